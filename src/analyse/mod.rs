//! Memory, time and price of a partitioned, staged job.
