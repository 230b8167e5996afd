functions {
  #include predcp_functions.stan
}
data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] X;
  array[N] int<lower=0, upper=1> y;
}
transformed data {
  matrix[N, D] design = logistic_ecp_design(X);
}
parameters {
  vector<lower=0>[D] lambda;
  vector[D] xi;
  real log_tau;
}
model {
  target += cauchy_lpdf(lambda | 0, 1) + D * log2();
  target += std_normal_lpdf(xi);
  target += logistic_ecp_lpdf(log_tau | lambda, design, 0, 1);
  target += bernoulli_logit_glm_lpmf(y | X, 0, exp(log_tau) * lambda .* xi);
}
