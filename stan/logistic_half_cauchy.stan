data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] X;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  vector<lower=0>[D] lambda;
  vector[D] xi;
  real log_tau;
}
model {
  target += cauchy_lpdf(lambda | 0, 1) + D * log2();
  target += std_normal_lpdf(xi);
  // tau ~ half-Cauchy(0, 1), with the Jacobian of log tau
  target += log(2 / pi()) + log_tau - log1p_exp(2 * log_tau);
  target += bernoulli_logit_glm_lpmf(y | X, 0, exp(log_tau) * lambda .* xi);
}
