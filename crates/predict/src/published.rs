//! The published stochastic predictor (thesis chapter 4 and Appendix A), for figures to be comparable.
