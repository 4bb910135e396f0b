//! The page behind each code: what it means, a wrong and a right example.
