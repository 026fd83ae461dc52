#include "text/tokenizer/special_text.h"

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  const char* const end = text.data() + text.size();
  return is_word_char(decode_char(previous_char(text.data(), end), end).code_point);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() &&
         is_word_char(decode_char(text.data(), text.data() + text.size()).code_point);
}

// Returns where the trailing white space of `text` begins.
std::size_t space_at_end(std::string_view text) {
  const char* p = text.data() + text.size();
  while (p > text.data()) {
    const char* const before = previous_char(text.data(), p);
    if (class_of(decode_char(before, p).code_point) != CharClass::space) break;
    p = before;
  }
  return static_cast<std::size_t>(p - text.data());
}

std::size_t space_at_start(std::string_view text) {
  const char* const p = skip_unicode_space(text.data(), text.data() + text.size());
  return static_cast<std::size_t>(p - text.data());
}

}  // namespace

AddedMatcher::AddedMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  // The first of equal contents wins.
  std::ranges::stable_sort(tokens_, {}, &AddedToken::content);
  const auto same = [](const auto& a, const auto& b) { return a.content == b.content; };
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(), same), tokens_.end());
  for (const AddedToken& token : tokens_) {
    longest_ = std::max(longest_, token.content.size());
    finds_ |= !token.special;
    strips_left_ |= token.lstrip;
    strips_right_ |= token.rstrip;
  }
  if (!finds_) return;
  grow_trie();
  link_failures();
}

void AddedMatcher::grow_trie() {
  // Sort the tokens by their reversed contents; the tokens below a node are then a range.
  std::vector<std::uint32_t> order(tokens_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [this](std::uint32_t a, std::uint32_t b) {
    const std::string &left = tokens_[a].content, &right = tokens_[b].content;
    return std::lexicographical_compare(left.rbegin(), left.rend(), right.rbegin(), right.rend(),
        [](unsigned char x, unsigned char y) { return x < y; });
  });
  struct Range {
    std::uint32_t low, high;
  };
  std::vector<Range> ranges = {{0, static_cast<std::uint32_t>(order.size())}};
  bytes_.assign(1, 0);
  longest_at_.assign(1, kNone);
  std::size_t level_end = 1;
  for (std::size_t node = 0, depth = 0; node < ranges.size(); ++node) {
    if (node == level_end) {
      ++depth;
      level_end = ranges.size();
    }
    auto [low, high] = ranges[node];
    const auto byte_of = [&](std::uint32_t i) {
      const std::string& content = tokens_[order[i]].content;
      return static_cast<unsigned char>(content[content.size() - 1 - depth]);
    };
    if (low < high && tokens_[order[low]].content.size() == depth) longest_at_[node] = order[low++];
    first_child_.push_back(static_cast<std::uint32_t>(ranges.size()));
    while (low < high) {
      const unsigned char byte = byte_of(low);
      std::uint32_t next = low + 1;
      while (next < high && byte_of(next) == byte) ++next;
      ranges.push_back({low, next});
      bytes_.push_back(byte);
      longest_at_.push_back(kNone);
      low = next;
    }
    if (ranges.size() > kMaxNodes)
      core::bad_data("the added tokens are longer than {} MiB together", kMaxNodes >> 20);
  }
  first_child_.push_back(static_cast<std::uint32_t>(ranges.size()));
}

void AddedMatcher::link_failures() {
  failures_.assign(bytes_.size(), 0);
  for (std::uint32_t i = first_child_[0]; i < first_child_[1]; ++i) roots_[bytes_[i]] = i;
  for (std::uint32_t node = 0; node < bytes_.size(); ++node)
    for (std::uint32_t i = first_child_[node]; i < first_child_[node + 1]; ++i) {
      if (node > 0) failures_[i] = next_state(failures_[node], bytes_[i]);
      if (longest_at_[i] == kNone) longest_at_[i] = longest_at_[failures_[i]];
    }
}

std::uint32_t AddedMatcher::next_state(std::uint32_t state, unsigned char byte) const {
  for (; state != 0; state = failures_[state]) {
    const auto low = bytes_.begin() + first_child_[state],
               high = bytes_.begin() + first_child_[state + 1];
    const auto found = std::lower_bound(low, high, byte);
    if (found != high && *found == byte) return static_cast<std::uint32_t>(found - bytes_.begin());
  }
  return roots_[byte];
}

template <class Take> void AddedMatcher::each_start(std::string_view text, const Take& take) const {
  std::uint32_t state = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    state = next_state(state, static_cast<unsigned char>(text[at]));
    if (longest_at_[state] != kNone) take(at, tokens_[longest_at_[state]]);
  }
}

void AddedMatcher::each(std::string_view text,
    const std::function<void(std::string_view)>& take_text,
    const std::function<void(std::uint32_t)>& take_token) const {
  struct Found {
    std::size_t at;
    const AddedToken* token;
  };
  std::vector<Found> found;  // from the last to the first
  if (finds_)
    each_start(text, [&](std::size_t at, const AddedToken& token) {
      found.push_back({at, &token});
    });
  std::size_t done = 0, next = 0;
  std::size_t space_begin = 0, space_end = 0;  // white space after a token, if examined
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    if (it->at < next) continue;
    const AddedToken& token = *it->token;
    std::size_t begin = it->at, end = next = it->at + token.content.size();
    if (token.special) continue;
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    if (token.lstrip)
      begin = done >= begin ? done : done + space_at_end(text.substr(done, begin - done));
    if (token.rstrip) {
      if (end < space_begin || end > space_end) {
        space_begin = end;
        space_end = end + space_at_start(text.substr(end));
      }
      end = space_end;
    }
    if (done < begin) take_text(text.substr(done, begin - done));
    if (begin < end) take_token(token.id);  // else in the white space of the token before it
    done = end;
  }
  if (done < text.size()) take_text(text.substr(done));
}

std::vector<AddedMatcher::Start> AddedMatcher::starts(std::string_view text) const {
  std::vector<Start> found;
  if (!finds_) return found;
  each_start(text, [&](std::size_t at, const AddedToken& token) {
    found.push_back({at, token.content.size()});
  });
  std::ranges::reverse(found);
  return found;
}

bool AddedMatcher::touches(std::string_view text, std::size_t at) const {
  if (!finds_) return false;
  // A token that strips white space may match across the position, beyond the ends of `text`.
  std::size_t low = at, high = at;
  if (strips_right_ && (low = space_at_end(text.substr(0, at))) < std::min(at, longest_))
    return true;
  if (strips_left_) {
    high += space_at_start(text.substr(at));
    if (high > at && text.size() - high < longest_) return true;
  }
  const std::size_t from = low - std::min(low, longest_);
  bool found = false;
  each_start(
      text.substr(from, high + longest_ - from), [&](std::size_t start, const AddedToken& token) {
        start += from;
        found |= start + token.content.size() >= low && start <= high;
      });
  return found;
}

std::vector<AddedToken> as_added(const std::vector<SpecialToken>& special) {
  return core::mapped(special, [](const auto& token) {
    return AddedToken{.id = token.id, .content = token.content, .special = true};
  });
}

SpecialText::SpecialText(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == TokenizerKind::word || tokenizer.kind() == TokenizerKind::units) return;
  for (const auto& token : tokenizer.special_tokens()) {
    if (token.content.size() < 2) continue;
    contents_.push_back(token.content);
    if (firsts_.find(token.content[0]) == firsts_.npos) firsts_ += token.content[0];
    seconds_[static_cast<unsigned char>(token.content[1])] = true;
  }
}

std::string_view SpecialText::find(std::string_view text) const {
  if (firsts_.empty()) return {};
  for (std::size_t at = 0; (at = text.find_first_of(firsts_, at)) != text.npos; ++at) {
    if (at + 1 == text.size() || !seconds_[static_cast<unsigned char>(text[at + 1])]) continue;
    const auto found = std::ranges::find_if(
        contents_, [rest = text.substr(at)](const auto& one) { return rest.starts_with(one); });
    if (found != contents_.end()) return *found;
  }
  return {};
}

std::string SpecialText::note(const std::string& where, std::string_view found) {
  return fmt::format(
      "{} contains the text of the special token {}, encoded as ordinary text; --special "
      "encodes it as the token",
      where, found);
}

}  // namespace text
