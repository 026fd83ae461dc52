#include "page/charts.h"

#include "core/plain_text.h"

namespace page {
namespace {

constexpr std::size_t kStretches = 80;
constexpr double kWidth = 640, kHeight = 180, kLeft = 40, kBottom = 24, kTop = 10;

struct Stretch {
  double nats = 0, beside = 0;
  std::uint64_t tokens = 0, compared = 0;
};

std::vector<Stretch> stretches_of(const AnnotatedText& text) {
  std::vector<Stretch> all(std::clamp<std::size_t>(text.tokens.size() / 8, 1, kStretches));
  for (std::size_t i = 0; i < text.tokens.size(); ++i) {
    const auto& token = text.tokens[i];
    Stretch& own = all[i * all.size() / text.tokens.size()];
    if (!token.scored()) continue;
    ++own.tokens;
    own.nats += token.nats;
    if (!token.compared()) continue;
    ++own.compared;
    own.beside += token.beside;
  }
  return all;
}

// Draws a line through the values that exist.
template <class Value>
std::string line(const std::vector<Stretch>& all, double most, const char* name, Value value) {
  std::string points;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double v = value(all[i]);
    if (std::isnan(v)) continue;
    fmt::format_to(std::back_inserter(points), "{:.1f},{:.1f} ",
        kLeft + (static_cast<double>(i) + .5) * (kWidth - kLeft) / static_cast<double>(all.size()),
        kTop + (1 - v / most) * (kHeight - kTop - kBottom));
  }
  return fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", name, points);
}

}  // namespace

std::string loss_by_position(const AnnotatedText& text) {
  const auto all = stretches_of(text);
  const auto own = [](const Stretch& s) {
    return s.tokens > 0 ? s.nats / static_cast<double>(s.tokens) : kUnknown;
  };
  const auto other = [](const Stretch& s) {
    return s.compared > 0 ? s.beside / static_cast<double>(s.compared) : kUnknown;
  };
  double most = 1;
  for (const auto& s : all)  // NaN is never more
    for (const double v : {own(s), other(s)})
      if (std::isfinite(v)) most = std::max(most, v);
  most = std::ceil(most);
  std::string svg = fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Mean loss along the "
      "text, in nats a token\">\n",
      kWidth, kHeight);
  for (const double share : {0., .5, 1.}) {
    const double y = kTop + (1 - share) * (kHeight - kTop - kBottom);
    fmt::format_to(std::back_inserter(svg),
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        kLeft, kWidth, y, y, kLeft - 6, y + 4, most * share);
  }
  fmt::format_to(std::back_inserter(svg),
      "<text x=\"{}\" y=\"{}\">token 0</text><text x=\"{}\" y=\"{}\" "
      "text-anchor=\"end\">token {}</text>\n",
      kLeft, kHeight - 6, kWidth, kHeight - 6, text.tokens.size());
  if (!text.beside.empty()) svg += line(all, most, "beside", other);
  return svg + line(all, most, "own", own) + "</svg>\n";
}

std::string colour_key(std::size_t source) {
  return fmt::format(
      "<svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"o{}\" "
      "width=\"10\" height=\"10\"/></svg>",
      source % 8);
}

std::string loss_by_source(const AnnotatedText& text) {
  const std::size_t n = text.sources.size();
  std::vector<double> shares(n), nats(n), most(n);
  double tokens = 0;
  for (const auto& token : text.tokens) {
    if (!token.scored() || token.shares.size() != n) continue;
    ++tokens;
    for (std::size_t i = 0; i < n; ++i) shares[i] += token.shares[i];
    const auto main = static_cast<std::size_t>(main_source(token));
    ++most[main];
    nats[main] += token.nats;
  }
  if (tokens == 0 || n < 2) return "";
  std::string table =
      "<table class=\"sources\"><thead><tr><th scope=\"col\">source</th><th scope=\"col\">share of "
      "the probability</th><th scope=\"col\">tokens it gave most of</th><th scope=\"col\">their "
      "mean loss</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < n; ++i) {
    const double share = shares[i] / tokens;
    fmt::format_to(std::back_inserter(table),
        "<tr><th scope=\"row\">{} {}</th><td><svg class=\"bar\" viewBox=\"0 0 100 10\" "
        "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"o{}\" width=\"{:.2f}\" "
        "height=\"10\"/></svg> {:.1f} %</td><td>{:.1f} %</td><td>{}</td></tr>\n",
        colour_key(i), escape(text.sources[i]), i % 8, 100 * share, 100 * share,
        100 * most[i] / tokens, most[i] > 0 ? fmt::format("{:.2f}", nats[i] / most[i]) : "");
  }
  return table + "</tbody></table>\n";
}

std::string escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = core::printable_length(text);
    switch (text[0]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\n':
      case '\t': out += text[0]; break;
      default: out += length > 0 ? text.substr(0, length) : "\xEF\xBF\xBD";
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

std::string script_json(const core::OrderedJson& json) {
  const std::string plain = core::dump(json);
  std::string out;
  out.reserve(plain.size());
  for (const char c : plain) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace page
