//! What a job computes in: its formats and the peak of its device for them.

use crate::elaborate::Job;
use crate::eval::{Evaluator, Record, Value};
use crate::units::Unit;
use std::rc::Rc;

/// `Compute` of the job's formats: dtype, peak and bytes of an operand.
pub(super) fn compute_record<'p>(eval: &mut Evaluator<'p, '_>, job: &Job<'p>) -> Option<Value<'p>> {
    let span = job.places.get("precision").copied().unwrap_or(job.span);
    let peak = device_peak(job);
    let formats = &job.numerics.formats;
    let (compute, accumulate) = (formats.get("compute")?, formats.get("accumulate")?);
    let Some(peak) = peak else {
        let name = &compute.name;
        eval.sink.error(super::errors::missing_peak(&job.cluster.device, name, span));
        return None;
    };
    let mut c = Record::made("compute", "", span);
    let mut put = |name: &str, value: Value<'p>| c.fields.insert(name.into(), value);
    put("dtype", Value::Record(Rc::clone(&compute.record)));
    put("accumulate", Value::Record(Rc::clone(&accumulate.record)));
    put("peak", Value::real(peak, Unit::flop_rate()));
    put("bytes", Value::real(compute.bytes, Unit::none()));
    put("scale", Value::word("none"));
    Some(Value::Record(Rc::new(c)))
}

/// The dense peak of the job's compute and accumulate formats, FLOP/s.
pub fn device_peak(job: &Job<'_>) -> Option<f64> {
    let formats = &job.numerics.formats;
    let (compute, accumulate) = (formats.get("compute")?, formats.get("accumulate")?);
    let Some(Value::Record(peaks)) = job.cluster.device.fields.get("peak") else { return None };
    let seen = match compute.record.fields.get("computes_as") {
        Some(Value::Record(r)) => r.name.to_string(),
        _ => compute.name.clone(),
    };
    match peaks.fields.get(seen.as_str())? {
        Value::Record(by) => by.fields.get(accumulate.name.as_str()).and_then(Value::as_f64),
        v => v.as_f64(),
    }
}
