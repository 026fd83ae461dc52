#pragma once
// Sources that read texts token by token and keep a state of each stream.

#include "infer/sources/source.h"

namespace infer {

/// Keeps a Stream for each stream of text; Stream::push(std::uint32_t) reads a token.
template <class Stream> class TextSource : public Source {
 public:
  TextSource(Stream begin, std::int64_t streams)
      : begin_(std::move(begin)), streams_(static_cast<std::size_t>(streams), begin_) {}

  void read(std::int64_t row, std::span<const std::int64_t> tokens) override {
    for (const std::int64_t token : tokens)
      streams_[static_cast<std::size_t>(row)].push(static_cast<std::uint32_t>(token));
  }
  void select(const torch::Tensor& rows) override { streams_ = selected(streams_, rows); }
  void clear() override { streams_.assign(streams_.size(), begin_); }
  void join(const Source& other, std::int64_t /*streams*/, std::int64_t /*more*/) override {
    const auto& more = dynamic_cast<const TextSource&>(other).streams_;
    streams_.insert(streams_.end(), more.begin(), more.end());
  }

 protected:
  /// Calls use(i, target, the stream before it) for each target of a window of stream 0. `use`
  /// pushes the target.
  template <class Use>
  void each_target(const Window& window, const torch::Tensor& targets, const Use& use) {
    read(0, window.before);
    const torch::Tensor tokens = targets.contiguous();
    const auto* const token = tokens.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < tokens.size(0); ++i) use(i, token[i], streams_[0]);
  }
  /// Calls use(i, the stream before it) for each row of score_vocabulary().
  template <class Use> void each_row(const VocabularyRows& rows, const Use& use) {
    if (rows.window == nullptr) {
      for (std::int64_t i = 0; i < rows.head.size(0); ++i) use(i, stream(i));
      return;
    }
    Window window = *rows.window;
    if (rows.begin != window.first_scored) window.before = {};
    each_target(window, window.targets.slice(0, rows.begin, rows.end).cpu(),
        [&](std::int64_t i, std::int64_t token, Stream& text) {
          use(i, text);
          text.push(static_cast<std::uint32_t>(token));
        });
  }
  const Stream& stream(std::int64_t row) const { return streams_[static_cast<std::size_t>(row)]; }

 private:
  Stream begin_;
  std::vector<Stream> streams_;
};

}  // namespace infer
