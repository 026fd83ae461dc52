#pragma once
// Sources of the stream's own positions: what the window shows, and a ring of those before it.

#include <optional>
#include <vector>

#include "infer/sources/source.h"
#include "nn/memory/entry_ring.h"

namespace infer {

/// A position is one entry, never two: those that stand in the window are taken from the window,
/// the ring serves those before it. The rules of who sees whom are nn::MemoryRule's.
class RingSource : public Source {
 public:
  std::vector<torch::Tensor> recall(const Window& window, const torch::Tensor& targets) override;
  void append(const torch::Tensor& f, const torch::Tensor& g, const torch::Tensor& labels,
              const nn::Place& place) override;
  void select(const torch::Tensor& rows) override;
  void clear() override;

 protected:
  /// Some of the positions, and the temperatures of their scores.
  struct Part {
    nn::MemoryRule rule;
    std::vector<double> temperatures;
    std::int64_t beyond = 0;          ///< the rule counts positions from so many tokens back on
    nn::MemoryRule at_first() const;  ///< at the first temperature
    nn::Entries shown(nn::Entries entries) const;
  };
  /// recall() gives all and positive of each part, (temperatures, R). Keys and queries are f, or g.
  /// Without `ring` nothing outside the window is ever seen.
  RingSource(std::vector<Part> parts, std::optional<std::int64_t> ring, bool of_f,
             torch::Dtype dtype);

  /// Log-masses of every word, (R, V), by a part.
  torch::Tensor word_masses(const WordRows& rows, const Part& part) const;
  /// Log-masses (R), float64 on the CPU, that rows [begin, end) of a window get of a part, at the
  /// first temperature.
  struct Masses {
    torch::Tensor all, positive;
  };
  Masses masses_of(const Part& part, const Window& window, std::int64_t begin,
                   std::int64_t end) const;
  const std::vector<Part>& parts() const { return parts_; }

 private:
  nn::Entries before(const Window& window) const;
  std::vector<Part> parts_;
  std::optional<nn::EntryRing> ring_;
  bool of_f_;
  torch::Dtype dtype_;
};

/// log p of a distribution of its own, of log-masses: -inf where p is 0, NaN where nothing is seen.
torch::Tensor alone(const torch::Tensor& positive, const torch::Tensor& all);
/// The same of every word, (R, V).
torch::Tensor alone(const torch::Tensor& masses);
/// exp(mass - all); 0 where nothing is seen.
torch::Tensor part_of(const torch::Tensor& mass, const torch::Tensor& all);

}  // namespace infer
