// Complexity priors for the global scale tau of a logistic regression, as densities of log tau.
//
// Model: beta_d = tau * lambda_d * xi_d, y_n ~ bernoulli_logit(x_n * beta), no intercept.
// kappa = D(tau) is the divergence of the predictions from those of beta = 0, log kappa is
// Cauchy(location, scale), and p(log tau) = cauchy(log kappa) * d log kappa / d log tau.
// Sums over rows take one form for all of them, chosen by the largest: it sets the accuracy.

// What logistic_ecp takes in place of x, to be computed once: times lambda^2 it is the variance
// of x_n * beta at tau = 1 in units of 8 / pi, the variance of the probit utility.
matrix logistic_ecp_design(matrix x) {
  if (max(abs(x)) == 0) {
    reject("x is all zero, so no scale changes any prediction");
  }
  return square(x) * (pi() / 8);
}

// ECP: D(tau) = mean over rows of (v - log(1 + v)) / 2, v = tau^2 * design * lambda^2.
real logistic_ecp_lpdf(real log_tau, vector lambda, matrix design, real location, real scale) {
  int N = rows(design);
  vector[N] unit = design * square(lambda);
  vector[N] v = exp(2 * log_tau) * unit;
  // sum_kappa and sum_slope are 2 N kappa and N (d kappa / d log tau), less a power of tau.
  real log_power;
  real sum_kappa;
  real sum_slope;
  if (max(v) < 0.1) {
    // v - log(1 + v) = v r - 2 (r^3 / 3 + r^5 / 5 + ...), r = v / (2 + v); v^2 taken out, since it may underflow.
    vector[N] h = inv(2 + v);
    vector[N] q = square(v .* h);
    vector[N] p = (1.0 / 15) * q + 1.0 / 13;
    for (k in 1 : 5) {
      p = p .* q + inv(13.0 - 2 * k);
    }
    log_power = 4 * log_tau;
    sum_kappa = dot_product(square(unit), h .* (1 - 2 * p .* square(h) .* v));
    sum_slope = dot_product(square(unit), inv(1 + v));
  } else if (min(v) > 1e20) {
    // The logarithm is below rounding, and v itself may overflow.
    log_power = 2 * log_tau;
    sum_kappa = sum(unit);
    sum_slope = sum_kappa;
  } else {
    log_power = 2 * log_tau;
    sum_kappa = sum(unit) - exp(-2 * log_tau) * sum(log1p(v));
    sum_slope = dot_product(unit, v ./ (1 + v));
  }
  real log_sum = log(sum_kappa);
  return cauchy_lpdf(log_power + log_sum - log(2.0 * N) | location, scale)
         + log2() + log(sum_slope) - log_sum;
}

// PredCP from |x_n * beta| at tau = 1 under each draw, not yet normalised:
// D(tau) = mean over rows and draws of KL[coin with logit a || fair coin], a = tau * unit.
real logistic_predcp_of_unit(real log_tau, vector unit, real location, real scale) {
  int M = size(unit);
  vector[M] c = -exp(log_tau) * unit;
  real largest = -min(c);
  if (largest < 1e-8) {
    // Only the quadratic form is left, and it alone survives underflow.
    return cauchy_lpdf(2 * log_tau + log(dot_self(unit) / (8.0 * M)) | location, scale) + log2();
  }
  if (largest > 1e150) {
    return negative_infinity();
  }
  vector[M] s = inv_logit(c);
  vector[M] t = c .* s;
  real sum_kappa;
  if (largest < 1) {
    // a/2 tanh(a/2) - log cosh(a/2), which loses no digits however small a is.
    vector[M] half = 0.5 * c;
    sum_kappa = dot_product(half, tanh(half)) - sum(log1p(2 * square(sinh(0.5 * half))));
  } else {
    // log 2 - log(1 + e^-a) - a / (1 + e^a), in which nothing overflows.
    sum_kappa = M * log2() + bernoulli_logit_lpmf(rep_array(0, M) | c) + sum(t);
  }
  // A row of zeros has no slope, and no say in how saturated the others are.
  real lowest = largest;
  for (m in 1 : M) {
    if (-c[m] < lowest && c[m] < 0) {
      lowest = -c[m];
    }
  }
  // d kappa / d log tau = mean of a^2 s (1 - s)
  real log_slope;
  if (lowest < 500) {
    log_slope = log(dot_product(c, t) - dot_self(t));
  } else {
    // s = e^-a to all digits, with the largest factored out.
    vector[M] moving = rep_vector(negative_infinity(), M);
    for (m in 1 : M) {
      if (c[m] < 0) {
        moving[m] = 2 * log(-c[m]) + c[m];
      }
    }
    log_slope = log_sum_exp(moving);
  }
  real log_sum = log(sum_kappa);
  return cauchy_lpdf(log_sum - log(M) | location, scale) + log_slope - log_sum;
}

// PredCP as the paper prints it; the columns of noise are fixed standard normal draws. Its total
// mass is cauchy_cdf(log(log(2)) | location, scale), not 1, because D is bounded by log 2.
real logistic_predcp_unnormalized_lpdf(real log_tau, vector lambda, matrix x, matrix noise,
                                       real location, real scale) {
  return logistic_predcp_of_unit(log_tau, abs(to_vector(x * diag_pre_multiply(lambda, noise))),
                                 location, scale);
}

// PredCP with the prior on kappa cut at the supremum of D, so that it is proper: the default.
real logistic_predcp_lpdf(real log_tau, vector lambda, matrix x, matrix noise,
                          real location, real scale) {
  int M = rows(x) * cols(noise);
  vector[M] unit = abs(to_vector(x * diag_pre_multiply(lambda, noise)));
  // A row of zeros never moves: the supremum is log 2 times the share of the others.
  int moving = 0;
  for (m in 1 : M) {
    moving += unit[m] > 0;
  }
  if (moving == 0) {
    reject("x or noise is all zero, so no scale changes any prediction");
  }
  return logistic_predcp_of_unit(log_tau, unit, location, scale)
         - cauchy_lcdf(log(log2() * moving / M) | location, scale);
}
