//! Stages and schedules: how units are cut into chunks, in which order ranks run them, and what that costs.
