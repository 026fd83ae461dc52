#pragma once
// Sources over the stream's own positions: those of the window, and a ring of earlier ones.

#include "infer/sources/source.h"
#include "nn/memory/entry_ring.h"

namespace infer {

/// Entries are positions of the stream. The window provides its own positions and the ring provides
/// earlier ones, so no position occurs twice. nn::MemoryRule defines visibility.
class RingSource : public Source {
 public:
  std::vector<torch::Tensor> recall(const Window& window, const torch::Tensor& targets) override;
  void append(const torch::Tensor& f, const torch::Tensor& g, const torch::Tensor& labels,
      const nn::TokenPositions& place) override;
  void select(const torch::Tensor& rows) override;
  void clear() override;
  void join(const Source& other, std::int64_t streams, std::int64_t more) override;

 protected:
  /// A set of visible positions and the temperatures of their scores.
  struct Part {
    nn::MemoryRule rule;
    std::vector<double> temperatures;
    std::int64_t beyond = 0;          ///< the rule applies to positions at least this many tokens
                                      ///< back
    nn::MemoryRule at_first() const;  ///< rule at the first temperature
    nn::Entries shown(nn::Entries entries) const;
  };
  /// recall() returns `all` and `positive` of each part, (temperatures, R). Keys and queries are f
  /// if `of_f`, else g. Without `ring` only the window is visible.
  RingSource(
      std::vector<Part> parts, std::optional<std::int64_t> ring, bool of_f, torch::Dtype dtype);

  /// Returns a part's log-masses of every token, (R, V).
  torch::Tensor token_masses(const VocabularyRows& rows, const Part& part) const;
  /// Returns log-masses (R), float64 on the CPU, of a part for rows [begin, end) of a window, at
  /// the first temperature.
  nn::Masses masses_of(
      const Part& part, const Window& window, std::int64_t begin, std::int64_t end) const;
  const std::vector<Part>& parts() const { return parts_; }

 private:
  nn::Entries before(const Window& window) const;
  std::vector<Part> parts_;
  std::optional<nn::EntryRing> ring_;
  bool of_f_;
  torch::Dtype dtype_;
};

/// Returns log p of a separate distribution from log-masses: -inf if p is 0, NaN if no entry is
/// visible.
torch::Tensor alone(const torch::Tensor& positive, const torch::Tensor& all);
/// Returns log p of every token, (R, V).
torch::Tensor alone(const torch::Tensor& masses);
/// Returns exp(mass - all); 0 if no entry is visible.
torch::Tensor part_of(const torch::Tensor& mass, const torch::Tensor& all);

}  // namespace infer
