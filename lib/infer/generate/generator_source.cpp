#include "infer/generate/generator_source.h"

namespace infer {

SourceReader::SourceReader(TranslationOptions options, text::TokenizerPtr tokenizer,
    std::optional<std::int64_t> context, const std::string& name)
    : options_(options), tokenizer_(std::move(tokenizer)) {
  const auto end = tokenizer_->end_of_document();
  if (!end)
    core::bad_data(
        "{}: its tokenizer has no end-of-document token, which a translation starts with", name);
  end_ = *end;
  most_ = std::min(options_.max_source, context.value_or(options_.max_source));
}

Start SourceReader::read(std::uint64_t number, const std::string& line,
    const std::function<void(const std::string&)>& warn) const {
  const auto ids = tokenizer_->encode(line);
  Start start{number, {end_}, {ids.begin(), ids.end()}, 0};
  auto& source = start.source;
  source.push_back(end_);
  if (std::ssize(source) > most_) {
    const auto what =
        fmt::format("line {}: has {} tokens, more than {}", number + 1, source.size(), most_);
    if (!options_.truncate)
      core::bad_data(
          "{}; shorten it, give --truncate-source, or raise --max-source if the model has more "
          "positions",
          what);
    if (warn) warn(what + "; truncated");
    source.resize(static_cast<std::size_t>(most_));
    source.back() = end_;
  }
  const double most = options_.max_len_a * static_cast<double>(source.size()) + options_.max_len_b;
  start.most = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(most, 1e9)));
  return start;
}

}  // namespace infer
