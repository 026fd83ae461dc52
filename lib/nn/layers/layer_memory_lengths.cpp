#include "nn/layers/layer_memory_lengths.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/units.h"

namespace nn {
namespace {

constexpr std::int64_t kMost = 4'000'000'000;
constexpr const char* kPlaces[] = {"all", "none", "first", "last", "middle", "interleaved"};

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  core::fail(core::Code::bad_config, "layer-memory: {}",
             fmt::format(format, std::forward<Args>(args)...));
}

std::int64_t number(const std::string& word, const std::string& text) {
  std::int64_t n = -1;
  try {
    n = core::parse_count(text);
  } catch (const core::Error&) {
  }
  if (n < 0 || n > kMost) refuse("'{}': '{}' is not a number of tokens", word, text);
  return n;
}

std::vector<std::string> words_of(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::int64_t> parse_list(const std::vector<std::string>& words, std::int64_t layers) {
  std::vector<std::int64_t> lengths;
  if (words == std::vector<std::string>{"none"}) return parse_list({"0"}, layers);
  for (const auto& word : words) lengths.push_back(number(word, word));
  if (lengths.size() == 1) lengths.resize(static_cast<std::size_t>(layers), lengths[0]);
  if (std::ssize(lengths) != layers)
    refuse("{} lengths for {} layers; give one for each, or one for all", lengths.size(), layers);
  return lengths;
}

// Returns the indices of the long layers, from the lowest layer.
std::vector<std::int64_t> places(const std::string& place, std::int64_t offset,
                                 std::int64_t layers) {
  const auto colon = place.find(':');
  const std::string name = place.substr(0, colon);
  const bool counted = colon != std::string::npos;
  if (std::find(std::begin(kPlaces), std::end(kPlaces), name) == std::end(kPlaces))
    refuse("'place={}': takes all, none, first:N, last:N, middle:N or interleaved:N", place);
  std::int64_t n = name == "all" ? layers : 0;
  const bool fixed = name == "all" || name == "none";
  if (fixed == counted) refuse("'place={}': {} takes {}", place, name, fixed ? "no number" : ":N");
  if (counted) n = number("place=" + place, place.substr(colon + 1));
  if (n > layers) refuse("'place={}': there are {} layers", place, layers);
  if (offset != 0 && name != "interleaved")
    refuse("'offset={}': requires place=interleaved", offset);
  if (offset != 0 && (n == 0 || offset >= layers / n))
    refuse("'offset={}': a group has {} layers", offset, n == 0 ? 0 : layers / n);

  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < n; ++i) {
    if (name == "first" || name == "all")
      chosen.push_back(i);
    else if (name == "last")
      chosen.push_back(layers - n + i);
    else if (name == "middle")
      chosen.push_back((layers - n) / 2 + i);
    else if (name == "interleaved")
      chosen.push_back((i + 1) * layers / n - 1 - offset);
  }
  return chosen;
}

}  // namespace

std::vector<std::int64_t> parse_layer_memory(const std::string& pattern, std::int64_t layers) {
  const auto words = words_of(pattern);
  if (words.empty()) refuse("is empty; give lengths, or a pattern such as long=512 place=last:2");
  if (pattern.find('=') == std::string::npos) return parse_list(words, layers);

  std::map<std::string, std::string> values = {
      {"long", "0"}, {"short", "0"}, {"offset", "0"}, {"place", ""}};
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const auto key = word.substr(0, equals);
    if (equals == std::string::npos || values.count(key) == 0)
      refuse("'{}': takes long=M, short=M, place=PLACE and offset=K", word);
    values[key] = word.substr(equals + 1);
  }
  if (values["place"].empty()) refuse("'{}': place= is missing", pattern);
  const auto value = [&](const char* key) {
    return number(std::string(key) + "=" + values[key], values[key]);
  };
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(layers), value("short"));
  for (const auto layer : places(values["place"], value("offset"), layers))
    lengths[static_cast<std::size_t>(layer)] = value("long");
  return lengths;
}

}  // namespace nn
