//! One job to ops over named dimensions.
