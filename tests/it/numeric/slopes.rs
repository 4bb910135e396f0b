//! The reference's own backward, against differences of its forward.

use super::array::Array;
use super::random::{Model, Piece, model};
use super::reference::Reference;
use super::{leaf, noise, reference, world};
use parc::graph::ValueId;

/// The loss where every parameter goes `t` of a fixed way.
fn along(model: &Model, t: f64) -> f64 {
    let setup = model.setup();
    let world = world(&setup);
    let moved = |value: ValueId, space| {
        let whole: Array = leaf(&world, value, space);
        if !matches!(world.graph.value(value).role, parc::graph::ValueRole::Param(_)) {
            return whole;
        }
        let mut at = 0;
        let data = whole.data.iter().map(|x| {
            at += 1;
            x + t * noise(1000 + u64::from(value.0), at)
        });
        Array { data: data.collect(), ..whole.clone() }
    };
    Reference::run(&world, &moved).loss(&world)
}

/// Every piece a random model is made of has the slopes that its backward says.
#[test]
fn the_reference_has_the_slopes_of_its_forward() {
    for piece in Piece::all() {
        let model = model(vec![piece]);
        let setup = model.setup();
        let world = world(&setup);
        let reference = reference(&world);
        let mut slope = 0.0;
        for (at, gradient) in reference.gradients.iter().enumerate() {
            let id = ValueId(at as u32);
            if let (Some(g), parc::graph::ValueRole::Param(_)) = (gradient, world.graph.value(id).role) {
                let way = (1..).map(|i| noise(1000 + at as u64, i));
                slope += g.data.iter().zip(way).map(|(g, w)| g * w).sum::<f64>();
            }
        }
        let h = 1e-5;
        let difference = (along(&model, h) - along(&model, -h)) / (2.0 * h);
        assert!((slope - difference).abs() <= 1e-6 * slope.abs().max(1e-2), "{piece:?}: {slope}, {difference}");
    }
}
