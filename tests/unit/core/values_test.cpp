// Options, units, digests, JSON, random numbers.

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/hash.h"
#include "core/json.h"
#include "core/options.h"
#include "core/plain_text.h"
#include "core/rng.h"
#include "core/units.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

struct Options {
  bool flag = false;
  std::int64_t size = 4;
  double rate = 0.1;
  std::string mode = "plain", choice;
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes = {1, 2};
  std::vector<double> rates;
  void fields(core::FieldList& f) {
    f("flag", flag, "a flag");
    f("the-size", size, "a size");
    f("rate", rate, "a rate");
    f("mode", mode, "a mode", {"plain", "other"});
    f("choice", choice, "no default", {"a", "b"});
    f("names", names, "names");
    f("sizes", sizes, "sizes");
    f("rates", rates, "rates");
  }
};

}  // namespace

DOCTEST_TEST_CASE("options go to JSON and come back") {
  DOCTEST_CHECK(rc::check([] {
    Options options, back;
    options.flag = *rc::gen::arbitrary<bool>();
    options.size = *rc::gen::arbitrary<std::int64_t>();
    options.choice = *rc::gen::element<std::string>("", "a", "b");
    options.rate = *rc::gen::inRange(-1000, 1000) / 7.0;
    options.names = {*rc::gen::nonEmpty<std::string>(), "a,b"};
    options.sizes = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(0, 1 << 30));
    options.rates = {1e-300, 0.1};
    for (auto& name : options.names)
      for (auto& c : name) c = static_cast<char>(c & 0x7f);
    const auto json = core::parse_json(core::dump(core::to_json(options)), "test");
    core::fields_from_json(core::list_fields(back), json, "test");
    RC_ASSERT(back.flag == options.flag);
    RC_ASSERT(back.size == options.size);
    RC_ASSERT(back.rate == options.rate);
    RC_ASSERT(back.choice == options.choice);
    RC_ASSERT(back.names == options.names);
    RC_ASSERT(back.sizes == options.sizes);
    RC_ASSERT(back.rates == options.rates);
  }));
}

DOCTEST_TEST_CASE("unknown keys and bad values are named") {
  Options options;
  const auto set = [&](const char* text, bool allow_unknown = false) {
    return thrown([&] {
      core::fields_from_json(
          core::list_fields(options), core::parse_json(text, "f.json"), "f.json", allow_unknown);
    });
  };
  DOCTEST_CHECK(set(R"({"the_size": "64K"})").code == 0);
  DOCTEST_CHECK(options.size == 64'000);
  const auto unknown = set(R"({"sise": 1})");
  DOCTEST_CHECK(unknown.code == 78);
  DOCTEST_CHECK(unknown.names("f.json"));
  DOCTEST_CHECK(unknown.names("sise"));
  DOCTEST_CHECK(set(R"({"sise": 1})", true).code == 0);
  for (const char* bad : {R"({"the_size": "many"})", R"({"the_size": 1.5})", R"({"rate": "x"})",
           R"({"rate": null})", R"({"mode": "third"})", R"({"mode": ""})", R"({"flag": 2})",
           R"({"the_size": [1, 2]})", R"({"rates": ["nan"]})", "[]"}) {
    DOCTEST_CAPTURE(bad);
    DOCTEST_CHECK(set(bad).code == 78);
  }
}

namespace {

struct Bounded {
  std::int64_t count = 4, buffer = 1, stride = 0, reach = -1;
  double share = 0.5, rate = 1;
  double clip = 0;
  std::vector<std::int64_t> sizes, windows;
  void fields(core::FieldList& f) {
    f("count", count, "a count").between(1, 16e6);
    f("buffer", buffer, "bytes").bytes(1, 1 << 30);
    f("stride", stride, "auto: all").auto_or(1, 10);
    f("share", share, "a share").fraction();
    f("rate", rate, "a rate").above(0);
    f("sizes", sizes, "sizes").between(0, 9);
    f("reach", reach, "none: all; auto: as before").none_or(1, 9).or_auto(-1);
    f("clip", clip, "none: no bound").above(0).at_most(5).or_none();
    f("windows", windows, "none: all").none_or(1, 9);
  }
};

}  // namespace

DOCTEST_TEST_CASE(
    "bounds: one refusal for flags, files and structs, and the field keeps its value") {
  Bounded options;
  const auto list = core::list_fields(options);
  const auto set = [&](const char* name, const std::vector<std::string>& values) {
    for (const auto& field : list.all())
      if (field.name == name) return thrown([&] { core::assign(field, values); });
    return thrown([] {});
  };
  DOCTEST_CHECK(set("count", {"16M"}).code == 0);
  DOCTEST_CHECK(options.count == 16'000'000);
  for (const char* bad : {"0", "-1", "16000001", "9E18"}) {
    DOCTEST_CAPTURE(bad);
    const auto refusal = set("count", {bad});
    DOCTEST_CHECK(refusal.code == 64);
    DOCTEST_CHECK(refusal.text == std::string("--count: takes 1 to 16M, not ") + bad);
    DOCTEST_CHECK(options.count == 16'000'000);
  }
  DOCTEST_CHECK(set("buffer", {"1G"}).code == 0);
  DOCTEST_CHECK(options.buffer == 1 << 30);
  DOCTEST_CHECK(set("buffer", {"2G"}).text == "--buffer: takes 1 to 1G, not 2G");
  DOCTEST_CHECK(set("share", {"0"}).code == 0);
  DOCTEST_CHECK(set("share", {"1"}).text == "--share: takes 0 to below 1, not 1");
  DOCTEST_CHECK(set("rate", {"1e300"}).code == 0);
  DOCTEST_CHECK(set("rate", {"0"}).text == "--rate: takes above 0, not 0");
  DOCTEST_CHECK(set("rate", {"inf"}).code == 64);
  DOCTEST_CHECK(set("sizes", {"3", "10"}).text == "--sizes: takes 0 to 9, not 10");
  DOCTEST_CHECK(options.sizes.empty());

  const auto file = thrown([&] {
    core::fields_from_json(list, core::parse_json(R"({"count": 0})", "f.json"), "f.json");
  });
  DOCTEST_CHECK(file.code == 78);
  DOCTEST_CHECK(file.text == "f.json: --count: takes 1 to 16M, not 0");

  DOCTEST_CHECK(thrown([&] { core::expect_within_bounds(list); }).code == 0);
  options.sizes = {1, 11};
  const auto filled = thrown([&] { core::expect_within_bounds(list); });
  DOCTEST_CHECK(filled.code == 78);
  DOCTEST_CHECK(filled.text == "sizes: takes 0 to 9, not 11");
}

DOCTEST_TEST_CASE("what is left to the program is auto, never a number") {
  Bounded options;
  const auto list = core::list_fields(options);
  const auto& stride = list.all()[2];
  DOCTEST_CHECK(core::to_strings(stride) == std::vector<std::string>{"auto"});
  DOCTEST_CHECK(stride.range() == "1 to 10, or auto");
  DOCTEST_CHECK(thrown([&] { core::assign(stride, {"0"}); }).code == 64);
  core::assign(stride, {"7"});
  DOCTEST_CHECK(options.stride == 7);
  DOCTEST_CHECK(core::to_strings(stride) == std::vector<std::string>{"7"});
  core::assign(stride, {"auto"});
  DOCTEST_CHECK(options.stride == 0);
  for (const char* bad : {"none", "all"}) {
    const auto refused = thrown([&] { core::assign(stride, {bad}); });
    DOCTEST_CHECK(refused.text == std::string("--stride: takes 1 to 10, or auto, not ") + bad);
  }
}

DOCTEST_TEST_CASE("none and auto: of whole numbers, of others, in lists, and two of one option") {
  Bounded options;
  const auto list = core::list_fields(options);
  const auto field = [&](const std::string& name) {
    return *std::find_if(
        list.all().begin(), list.all().end(), [&](const auto& one) { return one.name == name; });
  };
  const auto set = [&](const char* name, const std::vector<std::string>& values) {
    return thrown([&] { core::assign(field(name), values); }).text;
  };
  using Texts = std::vector<std::string>;
  DOCTEST_CHECK(core::to_strings(field("clip")) == Texts{"none"});
  DOCTEST_CHECK(set("clip", {"0"}) == "--clip: takes above 0 to 5, or none, not 0");
  DOCTEST_CHECK(set("clip", {"auto"}) == "--clip: takes above 0 to 5, or none, not auto");
  DOCTEST_CHECK(set("clip", {"0.5"}).empty());
  DOCTEST_CHECK(set("clip", {"none"}).empty());
  DOCTEST_CHECK(options.clip == 0);

  DOCTEST_CHECK(core::to_strings(field("reach")) == Texts{"auto"});
  for (const char* bad : {"0", "-1"})
    DOCTEST_CHECK(
        set("reach", {bad}) == std::string("--reach: takes 1 to 9, none or auto, not ") + bad);
  DOCTEST_CHECK(set("reach", {"none"}).empty());
  DOCTEST_CHECK(options.reach == 0);
  DOCTEST_CHECK(core::to_strings(field("reach")) == Texts{"none"});
  DOCTEST_CHECK(set("reach", {"auto"}).empty());
  DOCTEST_CHECK(options.reach == -1);

  DOCTEST_CHECK(set("windows", {"4", "none"}).empty());
  DOCTEST_CHECK(options.windows == std::vector<std::int64_t>{4, 0});
  DOCTEST_CHECK(core::to_strings(field("windows")) == Texts{"4", "none"});
  DOCTEST_CHECK(set("windows", {"4", "0"}) == "--windows: takes 1 to 9, or none, not 0");
  DOCTEST_CHECK(thrown([&] { core::expect_within_bounds(list); }).code == 0);

  // A model's config.json has the numbers of the struct.
  const auto json = core::parse_json(core::dump(core::to_json(options)), "f.json");
  DOCTEST_CHECK(json.at("reach") == -1);
  Bounded back;
  core::fields_from_json(core::list_fields(back), json, "f.json");
  DOCTEST_CHECK(core::to_json(back) == core::to_json(options));
}

DOCTEST_TEST_CASE("the nearest name, where one is near") {
  const std::vector<std::string> names = {"temperature", "top-k", "layers", "k", "seed"};
  DOCTEST_CHECK(core::nearest("temprature", names) == "temperature");
  DOCTEST_CHECK(core::nearest("layer", names) == "layers");
  DOCTEST_CHECK(core::nearest("sede", names) == "seed");
  DOCTEST_CHECK(core::nearest("colour", names).empty());
  DOCTEST_CHECK(core::nearest("x", names).empty());
  DOCTEST_CHECK(core::nearest("deed", names) == "seed");
  // A part of a name comes before a misspelling: first words at its beginning, then a
  // beginning, then words within.
  const std::vector<std::string> flags = {
      "--tokenizer", "--vocab-size", "--vocabulary", "--batch-tokens", "--max-tokens", "--window"};
  DOCTEST_CHECK(core::nearest("--vocab", flags) == "--vocab-size");
  DOCTEST_CHECK(core::nearest("--voca", flags) == "--vocab-size");
  DOCTEST_CHECK(core::nearest("--size", flags) == "--vocab-size");
  DOCTEST_CHECK(core::nearest("--tokens", flags) == "--max-tokens");
  DOCTEST_CHECK(core::nearest("--wind", flags) == "--window");
  DOCTEST_CHECK(core::nearest("--vocab_siz", flags) == "--vocab-size");
  DOCTEST_CHECK(core::nearest("--indow", flags) == "--window");
  DOCTEST_CHECK(core::nearest("batch", {"max_batch", "batch_tokens"}) == "batch_tokens");
  DOCTEST_CHECK(core::nearest("--stream", {"--beam"}).empty());  // dashes are no letters
  DOCTEST_CHECK(core::did_you_mean("layer", names, "--") == "; did you mean --layers?");
  DOCTEST_CHECK(core::did_you_mean(std::string(100'000, 'x'), names).empty());
}

DOCTEST_TEST_CASE("a heading of --help ends with the options that it is for") {
  struct Inner {
    bool b = false;
    void fields(core::FieldList& f) {
      const auto group = f.group("Inner");
      f("b", b, "");
    }
  } inner;
  bool a = false, c = false, d = false;
  core::FieldList list;
  {
    const auto outer = list.group("Outer");
    list("a", a, "");
    inner.fields(list);
    list("c", c, "");
    list.group("Other", inner);
  }
  list("d", d, "");
  std::string headings;
  for (const auto& field : list.all()) headings += field.name + "=" + field.group + " ";
  DOCTEST_CHECK(headings == "a=Outer b=Inner c=Outer b=Inner d= ");
}

DOCTEST_TEST_CASE("sizes and durations as people type them") {
  DOCTEST_CHECK(core::parse_count("64K") == 64'000);
  DOCTEST_CHECK(core::parse_count("1.1m") == 1'100'000);
  DOCTEST_CHECK(core::parse_count("0.3G") == 300'000'000);
  DOCTEST_CHECK(core::parse_count("-2k") == -2'000);
  DOCTEST_CHECK(core::parse_size("64") == 64);
  DOCTEST_CHECK(core::parse_size("64k") == 65'536);
  DOCTEST_CHECK(core::parse_size("1.5G") == 3ll << 29);
  DOCTEST_CHECK(core::parse_size("-1") == -1);
  DOCTEST_CHECK(core::parse_size("2GiB") == 2ll << 30);
  DOCTEST_CHECK(core::parse_count("1_000_000") == 1'000'000);
  DOCTEST_CHECK(core::parse_count("+10k") == 10'000);
  for (const char* bad : {"", "K", "1.5", "12X", "1_", "_1", "1__0", "+", "+-1", "2,000", "2GB",
           "1 K", "9999999999999T", "0x10", "1e400", "nan"}) {
    DOCTEST_CAPTURE(bad);
    DOCTEST_CHECK(thrown([&] { core::parse_size(bad); }).code == 64);
    DOCTEST_CHECK(thrown([&] { core::parse_count(bad); }).code == 64);
  }
  DOCTEST_CHECK(core::parse_duration_s("90") == 90);
  DOCTEST_CHECK(core::parse_duration_s("1:30") == 90);
  DOCTEST_CHECK(core::parse_duration_s("2:00:00.5") == 7200.5);
  DOCTEST_CHECK(core::parse_duration_s("2h") == 7200);
  DOCTEST_CHECK(core::parse_duration_s("1d1h30m5.5s") == 91'805.5);
  for (const char* bad : {"", ":", "1:", "-3", "h", "1h2", "1m1h", "1h1h", "-1h", "1:30m",
           "999999d", "1:2:3:4", "inf", "1e10", "99999999:00:00"}) {
    DOCTEST_CAPTURE(bad);
    DOCTEST_CHECK(thrown([&] { core::parse_duration_s(bad); }).code == 64);
  }
  DOCTEST_CHECK(core::parse_real(".5") == 0.5);
  DOCTEST_CHECK(core::parse_real("+1E-3") == 0.001);
  DOCTEST_CHECK(core::parse_real("2.5k") == 2500);
  DOCTEST_CHECK(core::parse_real("1_0.5") == 10.5);
  for (const char* bad : {"", "k", "nan", "1/2", "0,5", "1e", "%", "x%"}) {
    DOCTEST_CAPTURE(bad);
    DOCTEST_CHECK(thrown([&] { core::parse_real(bad); }).code == 64);
  }
  DOCTEST_CHECK(thrown([] { core::parse_real("50%"); }).names("'50%' is not a number; write 0.5"));
  DOCTEST_CHECK(
      core::counted(1, "document") + ", " + core::counted(0, "token") == "1 document, 0 tokens");
  DOCTEST_CHECK(core::format_count(16'000'000) == "16M");
  DOCTEST_CHECK(core::format_count(65'536) == "65536");
  DOCTEST_CHECK(core::format_count(65'536, 1024) == "64K");
  DOCTEST_CHECK(core::format_count(0x1p46, 1024) == "64T");
  DOCTEST_CHECK(core::format_count(9999e12) == "9999T");
  DOCTEST_CHECK(core::format_count(4e18) == "4000000000000000000");
  DOCTEST_CHECK(core::format_count(64e12, 1024) == "64000000000000");
  DOCTEST_CHECK(core::format_count(-1) == "-1");
  DOCTEST_CHECK(core::format_count(0.5) == "0.5");
  DOCTEST_CHECK(core::format_bytes(1536) == "1.5 KiB");
  DOCTEST_CHECK(core::format_bytes(3) == "3 B");
  DOCTEST_CHECK(core::format_duration(3723) == "1:02:03");
  DOCTEST_CHECK(core::format_duration(59.6) == "1:00");
}

DOCTEST_TEST_CASE("digests: known values, pieces, hexadecimal") {
  DOCTEST_CHECK(core::hash128(std::string_view()).hex() == "99aa06d3014798d86001c324468d497f");
  DOCTEST_CHECK(core::hash64({}) == 0x2d06800538d394c2u);
  DOCTEST_CHECK(rc::check([](const std::string& text) {
    const auto cut = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    core::Hasher hasher;
    hasher.update("forgotten");
    hasher.reset();
    hasher.update(std::string_view(text).substr(0, cut));
    hasher.update(std::string_view(text).substr(cut));
    RC_ASSERT(hasher.digest() == core::hash128(text));
    RC_ASSERT(core::Digest::from_hex(hasher.digest().hex()) == hasher.digest());
  }));
  for (const char* bad :
      {"", "99aa06d3014798d86001c324468d497", "99aa06d3014798d86001c324468d497G"})
    DOCTEST_CHECK(thrown([&] { core::Digest::from_hex(bad); }).code == 65);
}

DOCTEST_TEST_CASE("JSON: bad text, depth and types are errors, never crashes") {
  const auto parse = [](const std::string& text) {
    return thrown([&] { core::parse_json(text, "f.json"); });
  };
  DOCTEST_CHECK(parse("{\"a\": [1, 2.5, null]}").code == 0);
  for (const std::string bad : {"", "{", "{'a': 1}", "1 2", "1e999", "[1,]", "\"\xff\""}) {
    DOCTEST_CAPTURE(bad);
    DOCTEST_CHECK(parse(bad).code == 65);
  }
  DOCTEST_CHECK(parse("{\"a\": -Infinity}").names("f.json: -Infinity is not JSON"));
  DOCTEST_CHECK(parse("\"\xff\"").names("f.json: byte 1 (0xff) is not UTF-8"));
  const auto deep = parse(std::string(1'000'000, '['));
  DOCTEST_CHECK(deep.code == 65);
  DOCTEST_CHECK(deep.names("f.json"));

  const auto json = core::parse_json(R"({"b": -1, "a": "x", "c": true, "d": 1e300})", "f.json");
  DOCTEST_CHECK(core::dump(json) == R"({"a":"x","b":-1,"c":true,"d":1e+300})");
  DOCTEST_CHECK(core::get<std::int64_t>(json, "b", "f.json") == -1);
  DOCTEST_CHECK(core::get<std::string>(json, "a", "f.json") == "x");
  DOCTEST_CHECK(thrown([&] { core::get<std::uint64_t>(json, "b", "f.json"); }).code == 65);
  DOCTEST_CHECK(thrown([&] { core::get<std::int64_t>(json, "d", "f.json"); }).code == 65);
  DOCTEST_CHECK(thrown([&] { core::get<bool>(json, "a", "f.json"); }).code == 65);
  const auto missing = thrown([&] { core::get<bool>(json, "zz", "f.json"); });
  DOCTEST_CHECK(missing.code == 65);
  DOCTEST_CHECK(missing.names("zz"));
  DOCTEST_CHECK(core::dump(core::Json("\xff")) == "\"\xef\xbf\xbd\"");
}

DOCTEST_TEST_CASE("random numbers: fixed, apart, in range, even") {
  core::Rng a(1), b(1), c(1, 1), d(2);
  const auto first = a.next();
  DOCTEST_CHECK(first == b.next());
  DOCTEST_CHECK(first != c.next());
  DOCTEST_CHECK(first != d.next());
  const auto state = a.state();
  const auto next = a.next();
  a.set_state(state);
  DOCTEST_CHECK(a.next() == next);

  std::vector<int> counts(7, 0);
  double sum = 0, squares = 0;
  for (int i = 0; i < 70'000; ++i) {
    ++counts[a.below(7)];
    const double u = a.uniform(), z = a.normal();
    DOCTEST_REQUIRE((u >= 0 && u < 1));
    sum += z;
    squares += z * z;
  }
  for (const int count : counts) DOCTEST_CHECK(std::abs(count - 10'000) < 500);
  DOCTEST_CHECK(std::abs(sum / 70'000) < 0.02);
  DOCTEST_CHECK(std::abs(squares / 70'000 - 1) < 0.03);

  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  auto shuffled = items;
  a.shuffle(shuffled);
  DOCTEST_CHECK(shuffled != items);
  std::sort(shuffled.begin(), shuffled.end());
  DOCTEST_CHECK(shuffled == items);
}

DOCTEST_TEST_CASE("what a terminal would obey is written as bytes") {
  DOCTEST_CHECK(
      core::printable("plain \u00e9 \u4e2d \U0001f600") == "plain \u00e9 \u4e2d \U0001f600");
  DOCTEST_CHECK(core::printable("a\tb\n\x1b[1m\x7f") == "a\\x09b\\x0a\\x1b[1m\\x7f");
  DOCTEST_CHECK(core::printable("\xc2\x9b\xc2\xa0") == "\\xc2\\x9b\xc2\xa0");
  // A lone byte, an overlong form, a surrogate, a truncated character.
  DOCTEST_CHECK(core::printable("\x9b \xc0\x80 \xed\xa0\x80 \xe4\xb8") ==
                "\\x9b \\xc0\\x80 \\xed\\xa0\\x80 \\xe4\\xb8");
  DOCTEST_CHECK(core::printable("").empty());
}

DOCTEST_TEST_CASE(
    "an object whose members keep their order has at most 1,000 of them; a sorted one any number") {
  const auto with_members = [](int n) {
    std::string text = R"({"z":"a:b\":{",)";
    for (int i = 1; i < n; ++i) text += "\"k" + std::to_string(i) + "\":[1],";
    return text.substr(0, text.size() - 1) + "}";
  };
  const auto ordered = core::parse_ordered_json(with_members(1000), "x");
  DOCTEST_CHECK(ordered.size() == 1000);
  DOCTEST_CHECK(ordered.begin().key() == "z");
  const Thrown error = thrown([&] { core::parse_ordered_json(with_members(1001), "x"); });
  DOCTEST_CHECK(error.text == "x: an object of JSON has more than 1000 members");
  DOCTEST_CHECK(core::parse_json(with_members(100'000), "x").size() == 100'000);
}
