#include "tests/reference/linear_cross_entropy.h"

#include <algorithm>
#include <cmath>

namespace rowhouse::reference {
namespace {

// Logits of one token; `terms` becomes the largest sum of absolute values.
std::vector<double> LogitsOf(const CrossEntropyInputs& in, int64_t t,
                             double& terms) {
  std::vector<double> logits(in.row_count);
  terms = 0;
  for (int64_t v = 0; v < in.row_count; ++v) {
    double logit = in.bias.empty() ? 0.0 : in.bias[v];
    double sum = std::abs(logit);
    for (int64_t d = 0; d < in.dim; ++d) {
      const double product = static_cast<double>(in.hidden[t * in.dim + d]) *
                             in.weights[v * in.dim + d];
      logit += product;
      sum += std::abs(product);
    }
    logits[v] = logit;
    terms = std::max(terms, sum);
  }
  return logits;
}

void AddToken(const CrossEntropyInputs& in, int64_t t,
              const std::vector<double>& logits, double log_sum,
              CrossEntropyResult& out) {
  const double g = in.upstream[t];
  for (int64_t v = 0; v < in.row_count; ++v) {
    const double softmax = std::exp(logits[v] - log_sum);
    const double hit = v == in.targets[t] ? 1.0 : 0.0;
    const double p = g * (softmax - hit);
    const double term = std::abs(g) * (softmax + hit);
    out.bias_gradient[v] += p;
    out.bias_gradient_terms[v] += term;
    for (int64_t d = 0; d < in.dim; ++d) {
      const double w = in.weights[v * in.dim + d];
      const double h = in.hidden[t * in.dim + d];
      out.hidden_gradient[t * in.dim + d] += p * w;
      out.hidden_gradient_terms[t * in.dim + d] += term * std::abs(w);
      out.hidden_gradient_factors[t * in.dim + d] += std::abs(w);
      out.weight_gradient[v * in.dim + d] += p * h;
      out.weight_gradient_terms[v * in.dim + d] += term * std::abs(h);
      out.weight_gradient_factors[v * in.dim + d] += std::abs(h);
    }
  }
}

}  // namespace

CrossEntropyResult LinearCrossEntropy(const CrossEntropyInputs& in) {
  CrossEntropyResult out;
  out.loss.resize(in.token_count);
  out.largest_logit_terms.resize(in.token_count);
  for (auto* values : {&out.hidden_gradient, &out.hidden_gradient_terms,
                       &out.hidden_gradient_factors}) {
    values->resize(in.token_count * in.dim);
  }
  for (auto* values : {&out.weight_gradient, &out.weight_gradient_terms,
                       &out.weight_gradient_factors}) {
    values->resize(in.row_count * in.dim);
  }
  out.bias_gradient.resize(in.row_count);
  out.bias_gradient_terms.resize(in.row_count);
  for (int64_t t = 0; t < in.token_count; ++t) {
    const std::vector<double> logits =
        LogitsOf(in, t, out.largest_logit_terms[t]);
    if (in.targets[t] < 0) continue;
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    const double log_sum = largest + std::log(sum);
    out.loss[t] = log_sum - logits[in.targets[t]];
    AddToken(in, t, logits, log_sum, out);
  }
  return out;
}

}  // namespace rowhouse::reference
