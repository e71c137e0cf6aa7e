#include "tests/reference/linear_cross_entropy.h"

#include <algorithm>
#include <cmath>

namespace rowhouse::reference {
namespace {

// Logits of one token, not capped; `terms` becomes the largest sum of absolute
// values.
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

double WeightSum(const CrossEntropyInputs& in) {
  double sum = 0;
  for (int64_t v = 0; v < in.row_count; ++v) sum += in.class_weight(v);
  return sum;
}

// What a token's loss is the sum of: `hard` times the target's negative log
// probability, `soft` times that of each row by its weight, and the z-loss.
struct Shares {
  double hard;
  double soft;

  static Shares Of(const CrossEntropyInputs& in, int64_t t) {
    return {(1 - in.label_smoothing) * in.class_weight(in.targets[t]),
            in.label_smoothing / static_cast<double>(in.row_count)};
  }
};

void AddLoss(const CrossEntropyInputs& in, int64_t t,
             const std::vector<double>& logits, double log_sum,
             CrossEntropyResult& out) {
  const Shares shares = Shares::Of(in, t);
  out.z_loss[t] = in.z_loss * log_sum * log_sum;
  out.loss[t] = shares.hard * (log_sum - logits[in.targets[t]]) + out.z_loss[t];
  out.loss_terms[t] = shares.hard + 2 * in.z_loss * std::abs(log_sum);
  if (shares.soft == 0) return;
  for (int64_t v = 0; v < in.row_count; ++v) {
    const double weight = in.class_weight(v);
    out.loss[t] += shares.soft * weight * (log_sum - logits[v]);
    out.loss_terms[t] += shares.soft * weight * (2 + std::abs(logits[v]));
  }
}

void AddToken(const CrossEntropyInputs& in, int64_t t,
              const std::vector<double>& logits, double log_sum,
              CrossEntropyResult& out) {
  const double g = in.upstream[t];
  const double z_g = in.z_upstream.empty() ? g : in.z_upstream[t];
  const Shares shares = Shares::Of(in, t);
  const double all = shares.hard + shares.soft * WeightSum(in);
  for (int64_t v = 0; v < in.row_count; ++v) {
    const double softmax = std::exp(logits[v] - log_sum);
    const double hit = v == in.targets[t] ? shares.hard : 0.0;
    const double smooth = shares.soft * in.class_weight(v);
    const double capped = in.softcap == 0 ? 0 : logits[v] / in.softcap;
    const double slope = 1 - capped * capped;
    const double p = (g * (softmax * all - smooth - hit) +
                      z_g * 2 * in.z_loss * log_sum * softmax) *
                     slope;
    // Without the slope: its errors are absolute.
    const double term =
        std::abs(g) * (softmax * all + smooth + hit) +
        std::abs(z_g) * 2 * in.z_loss * (1 + std::abs(log_sum)) * softmax;
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
  out.z_loss.resize(in.token_count);
  out.loss_terms.resize(in.token_count);
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
    std::vector<double> logits = LogitsOf(in, t, out.largest_logit_terms[t]);
    if (in.softcap > 0) {
      for (double& z : logits) z = in.softcap * std::tanh(z / in.softcap);
    }
    out.logits.insert(out.logits.end(), logits.begin(), logits.end());
    if (in.targets[t] < 0) continue;
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    const double log_sum = largest + std::log(sum);
    AddLoss(in, t, logits, log_sum, out);
    AddToken(in, t, logits, log_sum, out);
  }
  return out;
}

}  // namespace rowhouse::reference
