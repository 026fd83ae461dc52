#include "page/page_writer.h"

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

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr double kMuch = 0.1;  // probability share above which contexts are marked
constexpr std::size_t kExtremes = 8;

// Returns the last step that the value reaches.
std::size_t step_of(double value, std::initializer_list<double> steps) {
  std::size_t step = 0;
  for (const double least : steps) step += value >= least ? 1 : 0;
  return step;
}

// Classes: s0 to s7 for the loss in nats, d0 to d6 for the gain in nats (d3: about none), o0 to o7
// for the main source.
std::string classes_of(const AnnotatedToken& token) {
  std::string classes = "t";
  const auto add = [&](char kind, std::size_t step) {
    fmt::format_to(std::back_inserter(classes), " {}{}", kind, step);
  };
  if (token.scored()) add('s', step_of(token.nats, {0.5, 1, 2, 3.5, 5, 7, 9}));
  if (token.compared()) add('d', step_of(token.beside - token.nats, {-2, -0.7, -0.1, 0.1, 0.7, 2}));
  if (const auto source = main_source(token); source >= 0)
    add('o', static_cast<std::size_t>(source) % 8);
  if (core::sum_of(token.contexts, [](const auto& context) { return context.share; }) >= kMuch)
    classes += " c";
  if (token.text.find('\n') != std::string::npos) classes += " n";
  return classes;
}

core::OrderedJson number(double value, double places) {
  if (!std::isfinite(value)) return nullptr;
  return std::round(value * places) / places;
}

// Writes the data of the tokens in the order that page.js reads.
class Details {
 public:
  core::OrderedJson of(const AnnotatedToken& token) {
    if (!token.scored()) return nullptr;
    core::OrderedJson likely = core::OrderedJson::array(), contexts = likely, shares = likely;
    for (const auto& [word, p] : token.likely) likely.push_back({word, number(p, 1e4)});
    for (const double share : token.shares) shares.push_back(number(share, 1e4));
    for (const auto& context : token.contexts)
      contexts.push_back({store(context.store), context.document, context.row,
          number(context.share, 1e4), context.text, context.source});
    // Write an infinite loss as a string, because JSON has no such number.
    core::OrderedJson nats = number(token.nats, 1e4);
    if (std::isinf(token.nats)) nats = "inf";
    return core::OrderedJson::array(
        {nats, number(token.beside, 1e4), token.rank, likely, shares, contexts});
  }
  const std::vector<std::string>& stores() const { return stores_; }

 private:
  std::size_t store(const std::string& name) {
    const auto [at, made] = numbers_.try_emplace(name, stores_.size());
    if (made) stores_.push_back(name);
    return at->second;
  }
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> stores_;
};

std::string figures(const AnnotatedText& text) {
  const Means means = means_of(text);
  std::string out = fmt::format("<p>{} tokens", means.tokens);
  if (means.tokens > 0)
    fmt::format_to(std::back_inserter(out), ", perplexity <b>{:.2f}</b>, loss {:.4f} nats",
        std::exp(means.nats), means.nats);
  if (!text.model.empty()) fmt::format_to(std::back_inserter(out), " by {}", escape(text.model));
  out += "</p>\n";
  if (means.compared > 0)
    fmt::format_to(std::back_inserter(out),
        "<p>Beside it {}: perplexity <b>{:.2f}</b>; this is {:.4f} nats a token {}.</p>\n",
        escape(text.beside), std::exp(means.beside), std::abs(means.beside - means.nats_compared),
        means.beside >= means.nats_compared ? "better" : "worse");
  return out;
}

// Lists the tokens with the largest gains or losses; each is a button that leads to the token.
std::string extremes(const AnnotatedText& text, bool better) {
  std::vector<std::size_t> order;
  const auto gain = [&](std::size_t i) {
    const auto& token = text.tokens[i];
    const double by = token.beside - token.nats;
    return better ? by : -by;
  };
  for (std::size_t i = 0; i < text.tokens.size(); ++i)
    if (text.tokens[i].compared() && gain(i) > 0) order.push_back(i);
  const auto n = std::min(kExtremes, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
      [&](std::size_t a, std::size_t b) { return gain(a) != gain(b) ? gain(a) > gain(b) : a < b; });
  order.resize(n);
  std::string list =
      fmt::format("<section><h2>Where it {} most</h2><ol>\n", better ? "helps" : "hurts");
  for (const std::size_t i : order)
    fmt::format_to(std::back_inserter(list),
        "<li><button type=\"button\" data-go=\"{}\">{}</button> {:.2f} nats</li>\n", i,
        escape(text.tokens[i].text), gain(i));
  return list + "</ol></section>\n";
}

// Draws a square in the colour of a source.
std::string colour_key(std::size_t source) {
  return fmt::format(
      "<svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"o{}\" "
      "width=\"10\" height=\"10\"/></svg>",
      source % 8);
}

std::string controls(const AnnotatedText& text, bool sources) {
  std::string out =
      "<fieldset id=\"colours\"><legend>Colours</legend>\n"
      "<label><input type=\"radio\" name=\"colour\" value=\"surprise\" checked> surprise</label>\n";
  if (!text.beside.empty())
    out +=
        "<label><input type=\"radio\" name=\"colour\" value=\"difference\"> difference</label>\n";
  if (sources)
    out += "<label><input type=\"radio\" name=\"colour\" value=\"source\"> source</label>\n";
  out +=
      "</fieldset>\n<p class=\"legend surprise\"><span class=\"s0\">0</span><span "
      "class=\"s1\">0.5</span><span class=\"s2\">1</span><span class=\"s3\">2</span><span "
      "class=\"s4\">3.5</span><span class=\"s5\">5</span><span class=\"s6\">7</span><span "
      "class=\"s7\">9</span> nats and more; dotted below: the stored contexts that are listed gave "
      "a tenth of it or more</p>\n"
      "<p class=\"legend difference\"><span class=\"d0\">worse by 2</span><span "
      "class=\"d1\">0.7</span><span class=\"d2\">0.1</span><span class=\"d3\">as "
      "good</span><span class=\"d4\">0.1</span><span class=\"d5\">0.7</span><span "
      "class=\"d6\">better by 2 nats</span></p>\n<p class=\"legend source\">";
  for (std::size_t i = 0; i < text.sources.size(); ++i)
    out += colour_key(i) + " " + escape(text.sources[i]) + "&emsp;";
  return out + "gave most of it</p>\n";
}

class Pieces {
 public:
  explicit Pieces(core::ByteSink& sink) : sink_(sink) {}
  Pieces& operator<<(std::string_view text) {
    held_ += text;
    if (held_.size() >= kPieceBytes) flush();
    return *this;
  }
  void flush() {
    sink_.write(held_);
    held_.clear();
  }

 private:
  core::ByteSink& sink_;
  std::string held_;
};

core::OrderedJson line_of(std::size_t number, const AnnotatedText& text) {
  const AnnotatedToken& token = text.tokens[number];
  core::OrderedJson line{{"number", number}, {"text", token.text}};
  if (!token.scored()) return line;
  line["nats"] = token.nats;
  if (token.compared()) line["beside"] = token.beside;
  if (token.rank >= 0) line["rank"] = token.rank;
  for (std::size_t i = 0; i < token.shares.size(); ++i)
    line["shares"][text.sources[i]] = token.shares[i];
  for (const auto& [word, p] : token.likely) line["likely"].push_back({{"text", word}, {"p", p}});
  for (const auto& context : token.contexts) {
    line["contexts"].push_back({{"store", context.store}, {"document", context.document},
        {"row", context.row}, {"share", context.share}, {"context", context.text}});
    if (!context.source.empty()) line["contexts"].back()["source"] = context.source;
  }
  return line;
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
    if (c == '<') out += "\\u003c";
    else out += c;
  }
  return out;
}

void write_page(core::ByteSink& sink, const AnnotatedText& text) {
  Pieces out(sink);
  const std::string by_source = loss_by_source(text);
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
         "<title>"
      << escape(text.title) << "</title>\n<style>\n"
      << kPageStyle << "</style>\n</head>\n<body>\n<header>\n<h1>" << escape(text.title)
      << "</h1>\n"
      << figures(text) << "</header>\n<main>\n"
      << controls(text, !by_source.empty())
      << "<p id=\"help\">Click a token, or come here with Tab and walk with the arrow keys; Home "
         "and End lead to the ends.</p>\n"
         "<div id=\"text\" tabindex=\"0\" role=\"group\" aria-label=\"The text\" "
         "aria-describedby=\"help\" data-colour=\"surprise\">";
  for (const auto& token : text.tokens) {
    if (token.begins_document && &token != &text.tokens.front()) out << "<hr>";
    out << "<span class=\"" << classes_of(token) << "\">" << escape(token.text) << "</span>";
  }
  out << "</div>\n</main>\n<aside id=\"detail\" aria-live=\"polite\" aria-label=\"The "
         "token\"><p>No "
         "token is chosen.</p></aside>\n<section><h2>Loss along the text</h2>\n"
      << loss_by_position(text) << "</section>\n";
  if (!by_source.empty())
    out << "<section><h2>Where the probability came from</h2>\n" << by_source << "</section>\n";
  if (!text.beside.empty()) out << extremes(text, true) << extremes(text, false);
  Details details;
  out << "<template id=\"bar\"><svg class=\"bar\" viewBox=\"0 0 100 10\" "
         "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
         "height=\"10\"/></svg></template>\n";
  out << "<script type=\"application/json\" id=\"tokens\">[";
  for (std::size_t i = 0; i < text.tokens.size(); ++i)
    out << (i > 0 ? ",\n" : "\n") << script_json(details.of(text.tokens[i]));
  out << "]</script>\n<script type=\"application/json\" id=\"names\">"
      << script_json({{"sources", text.sources}, {"stores", details.stores()}})
      << "</script>\n<script>\n"
      << kPageScript << "</script>\n</body>\n</html>\n";
  out.flush();
}

void write_lines(core::ByteSink& sink, const AnnotatedText& text) {
  for (std::size_t i = 0; i < text.tokens.size(); ++i)
    sink.write(core::dump(line_of(i, text)) + "\n");
}

}  // namespace page
