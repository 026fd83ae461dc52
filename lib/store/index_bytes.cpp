#include "store/index_bytes.h"

#include "store/manifest.h"

namespace store {
namespace {

constexpr std::uint64_t kMostUntrainedLists = std::uint64_t{1} << 22;

constexpr std::uint64_t kMostEf = 1 << 16, kMostBlock = 1 << 12, kMostTransforms = 8;
constexpr std::uint64_t kMostTable = std::uint64_t{1} << 28;  // floats FAISS computes of codebooks
constexpr float kMostRefined = 64;                            // most hits refined per requested hit
constexpr std::uint64_t kNoCodeSize = ~std::uint64_t{0};

// The elements of a vector within the file.
template <class T> struct Array {
  const std::byte* data = nullptr;
  std::uint64_t size = 0;
  T operator[](std::uint64_t i) const {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
  }
};

struct Header {  // common to all indices
  std::uint64_t width = 0, rows = 0;
  bool trained = false;
  std::int32_t metric = 0;
};

// faiss::ScalarQuantizer::QuantizerType: bits per coordinate, and whether ranges are learned for
// each coordinate (2), for all together (1) or not (0).
struct ScalarType {
  std::uint64_t bits, ranges;
};
constexpr std::array<ScalarType, 7> kScalarTypes{
    {{8, 2}, {4, 2}, {8, 1}, {4, 1}, {16, 0}, {8, 0}, {6, 2}}};

// Parses an index in the order in which FAISS reads it.
class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& origin)
      : bytes_(bytes), origin_(origin) {}

  void whole(std::uint64_t rows) {
    const Header header = index(0);
    expect(header.rows == rows, "its number of rows");
    expect(at_ == bytes_.size(), "its end");
  }

 private:
  [[noreturn]] void damaged(std::string_view what) const {
    core::bad_data("{}: damaged at byte {}: {} is impossible; rebuild the index with store rebuild",
        origin_, at_, what);
  }
  void expect(bool right, std::string_view what) const {
    if (!right) damaged(what);
  }

  std::uint64_t left() const { return bytes_.size() - at_; }
  template <class T> T read(std::string_view what) {
    expect(left() >= sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  bool flag(std::string_view what) {
    const auto value = read<std::uint8_t>(what);
    expect(value <= 1, what);
    return value == 1;
  }
  // Reads a number from `least` to `most`.
  template <class T>
  std::uint64_t number(std::uint64_t least, std::uint64_t most, std::string_view what) {
    const T value = read<T>(what);
    expect(!std::cmp_less(value, 0), what);
    const auto wide = static_cast<std::uint64_t>(value);
    expect(wide >= least && wide <= most, what);
    return wide;
  }
  template <class T> Array<T> elements(std::uint64_t size, std::string_view what) {
    expect(size <= left() / sizeof(T), what);
    const Array<T> array{bytes_.data() + at_, size};
    at_ += size * sizeof(T);
    return array;
  }
  template <class T> Array<T> vector(std::string_view what) {
    return elements<T>(read<std::uint64_t>(what), what);
  }
  template <class T> Array<T> vector(std::uint64_t size, std::string_view what) {
    const auto array = vector<T>(what);
    expect(array.size == size, what);
    return array;
  }

  Header header() {
    Header h;
    h.width = number<std::int32_t>(1, kMostWidth, "its width");
    h.rows = number<std::int64_t>(0, kMostRows, "its number of rows");
    read<std::int64_t>("its header"), read<std::int64_t>("its header");
    h.trained = flag("its header");
    h.metric = static_cast<std::int32_t>(number<std::int32_t>(0, 1, "its metric"));
    expect(h.trained || h.rows == 0, "an untrained index with rows");
    return h;
  }

  Header index(int depth);
  Header flat();
  Header product();
  Header fast_product();
  Header scalar();
  Header graph(int depth, std::string_view type);
  Header lists(int depth, std::string_view type);
  Header transformed(int depth);
  Header refined(int depth);
  void transform(std::uint64_t& width);
  std::uint64_t codebooks(
      std::uint64_t width, std::uint64_t least_bits, std::uint64_t most_bits, std::uint64_t& parts);
  std::uint64_t scalars(const Header& header);
  void links(std::uint64_t rows);
  void inverted(std::uint64_t n_lists, std::uint64_t code_bytes, std::uint64_t rows);
  void blocks(std::uint64_t n_lists, std::uint64_t block_rows, std::uint64_t block_bytes,
      std::uint64_t rows);
  std::vector<bool> none_seen(std::uint64_t rows) const;
  void numbers(const Array<std::int64_t>& ids, std::vector<bool>& seen) const;
  std::string_view type() {
    expect(left() >= 4, "its type");
    at_ += 4;
    return {reinterpret_cast<const char*>(bytes_.data()) + at_ - 4, 4};
  }

  std::span<const std::byte> bytes_;
  const std::string& origin_;
  std::uint64_t at_ = 0;
  std::uint64_t distances_ = 0;  // size of the last codebooks' tables: parts * 4^bits
  bool untrained_ = false;       // whether one of the last transformations is untrained
};

Header Parser::index(int depth) {
  const std::string_view name = type();
  if (name == "IxFI" || name == "IxF2" || name == "IxFl") return flat();
  if (name == "IxPq") return product();
  if (name == "IPfs") return fast_product();
  if (name == "IxSQ") return scalar();
  // The nesting that FAISS's factory builds: refinement, transformation, lists, graph.
  if (depth < 4) {
    if (name == "IHNf" || name == "IHNp" || name == "IHNs") return graph(depth + 1, name);
    if (name == "IwFl" || name == "IwPQ" || name == "IwPf" || name == "IwSq")
      return lists(depth + 1, name);
    if (name == "IxPT") return transformed(depth + 1);
    if (name == "IxRF") return refined(depth + 1);
  }
  const bool printable = std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  });
  core::bad_data(
      "{}: an index of type '{}' is not supported, since it cannot be validated; rebuild the "
      "index with store rebuild",
      origin_, printable ? name : "?");
}

Header Parser::flat() {
  const Header h = header();
  vector<float>(h.rows * h.width, "its vectors");
  return h;
}

// Reads a product quantizer and returns the bytes per code. Codebooks are (parts, 2^bits, width /
// parts).
std::uint64_t Parser::codebooks(
    std::uint64_t width, std::uint64_t least_bits, std::uint64_t most_bits, std::uint64_t& parts) {
  expect(read<std::uint64_t>("codes") == width, "the width of codes");
  parts = number<std::uint64_t>(1, width, "the number of codes");
  expect(width % parts == 0, "the number of codes");
  const auto bits = number<std::uint64_t>(least_bits, most_bits, "the bits of a code");
  vector<float>(width << bits, "codebooks");
  distances_ = parts << (2 * bits);
  return (bits * parts + 7) / 8;
}

Header Parser::product() {
  const Header h = header();
  std::uint64_t parts = 0;
  const auto bytes = codebooks(h.width, 1, 16, parts);
  vector<std::uint8_t>(h.rows * bytes, "codes");
  expect(read<std::int32_t>("the kind of search") == 0, "the kind of search");
  flag("the kind of search"), read<std::int32_t>("the kind of search");
  return h;
}

Header Parser::fast_product() {
  const Header h = header();
  std::uint64_t parts = 0;
  codebooks(h.width, 4, 4, parts);
  expect(read<std::int32_t>("the kind of search") == 0, "the kind of search");
  const auto block = number<std::int32_t>(32, kMostBlock, "the size of blocks");
  expect(block % 32 == 0, "the size of blocks");
  expect(read<std::int32_t>("the kind of search") == 0, "the kind of search");
  const std::uint64_t padded = (h.rows + block - 1) / block * block, even = (parts + 1) / 2 * 2;
  expect(read<std::uint64_t>("the size of blocks") == padded, "the size of blocks");
  expect(read<std::uint64_t>("the number of codes") == even, "the number of codes");
  vector<std::uint8_t>(padded * even / 2, "codes");
  return h;
}

// Reads a scalar quantizer and returns the bytes per code.
std::uint64_t Parser::scalars(const Header& h) {
  const auto& kind = kScalarTypes[number<std::int32_t>(0, kScalarTypes.size() - 1, "codes")];
  read<std::int32_t>("ranges"), read<float>("ranges");
  expect(read<std::uint64_t>("codes") == h.width, "the width of codes");
  const std::uint64_t bytes = (h.width * kind.bits + 7) / 8;
  expect(read<std::uint64_t>("codes") == bytes, "the size of codes");
  const std::uint64_t ranges = kind.ranges == 2 ? 2 * h.width : 2 * kind.ranges;
  vector<float>(h.trained ? ranges : 0, "ranges");
  return bytes;
}

Header Parser::scalar() {
  const Header h = header();
  const auto bytes = scalars(h);
  vector<std::uint8_t>(h.rows * bytes, "codes");
  return h;
}

// Levels count from 1. A row of level l has neighbours on levels 0 .. l - 1. Neighbours of level i
// are in [offset + before[i], offset + before[i + 1]).
void Parser::links(std::uint64_t rows) {
  const auto chances = vector<double>("levels");
  expect(chances.size >= 1, "levels");
  const auto before = vector<std::int32_t>(chances.size + 1, "levels");
  expect(before[0] == 0, "levels");
  for (std::uint64_t i = 0; i < chances.size; ++i)
    expect(before[i + 1] > before[i] && before[i + 1] <= (1 << 24), "levels");
  const auto levels = vector<std::int32_t>(rows, "levels");
  const auto offsets = vector<std::uint64_t>(rows + 1, "positions of neighbours");
  const auto neighbours = vector<std::int32_t>("neighbours");
  expect(offsets[0] == 0 && offsets[rows] == neighbours.size, "positions of neighbours");
  for (std::uint64_t row = 0; row < rows; ++row)
    expect(levels[row] >= 1 && static_cast<std::uint64_t>(levels[row]) <= chances.size &&
               offsets[row + 1] - offsets[row] ==
                   static_cast<std::uint64_t>(before[static_cast<std::uint64_t>(levels[row])]),
        "the level of a row");
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::int32_t level = 0; level < levels[row]; ++level) {
      const auto at = static_cast<std::uint64_t>(level);
      for (auto i = offsets[row] + static_cast<std::uint64_t>(before[at]);
           i < offsets[row] + static_cast<std::uint64_t>(before[at + 1]); ++i) {
        const std::int32_t to = neighbours[i];
        expect(to == -1 || (to >= 0 && static_cast<std::uint64_t>(to) < rows &&
                               levels[static_cast<std::uint64_t>(to)] > level),
            "a neighbour");
      }
    }
  const auto entry = read<std::int32_t>("the entry");
  const auto top = read<std::int32_t>("the highest level");
  expect(rows == 0 ? entry == -1
                   : entry >= 0 && static_cast<std::uint64_t>(entry) < rows && top >= 0 &&
                         top < levels[static_cast<std::uint64_t>(entry)],
      "the entry");
  expect(rows > 0 || top == -1, "the highest level");
  number<std::int32_t>(1, kMostEf, "efConstruction");
  number<std::int32_t>(1, kMostEf, "efSearch");
  expect(read<std::int32_t>("the beam") == 1, "the beam");
}

Header Parser::graph(int depth, std::string_view name) {
  const Header h = header();
  links(h.rows);
  const auto from = at_;
  const std::string_view stored = type();
  const bool fits = name == "IHNf"   ? stored == "IxFI" || stored == "IxF2" || stored == "IxFl"
                    : name == "IHNp" ? stored == "IxPq"
                                     : stored == "IxSQ";
  expect(fits, "the storage of a graph");
  at_ = from;
  const Header storage = index(depth);
  expect(storage.rows == h.rows && storage.width == h.width && storage.metric == h.metric,
      "the storage of a graph");
  expect(name != "IHNp" || distances_ <= kMostTable, "the bits of a code");
  return h;
}

// Reads row numbers, each at most once, below the size of `seen`.
void Parser::numbers(const Array<std::int64_t>& ids, std::vector<bool>& seen) const {
  for (std::uint64_t i = 0; i < ids.size; ++i) {
    const auto row = static_cast<std::uint64_t>(ids[i]);
    expect(row < seen.size() && !seen[row], "the number of a row");
    seen[row] = true;
  }
}

// Returns a flag for each row; the rest of the file has a number for each.
std::vector<bool> Parser::none_seen(std::uint64_t rows) const {
  expect(rows <= left() / sizeof(std::int64_t), "its number of rows");
  return std::vector<bool>(rows);
}

void Parser::inverted(std::uint64_t n_lists, std::uint64_t code_bytes, std::uint64_t rows) {
  expect(type() == "ilar", "the kind of lists");
  expect(read<std::uint64_t>("lists") == n_lists, "the number of lists");
  expect(read<std::uint64_t>("lists") == code_bytes, "the size of codes");
  std::vector<std::uint64_t> sizes(n_lists);
  const std::string_view form = type();
  expect(form == "full" || form == "sprs", "the kind of lists");
  if (form == "full") {
    const auto all = vector<std::uint64_t>(n_lists, "the size of lists");
    for (std::uint64_t i = 0; i < n_lists; ++i) sizes[i] = all[i];
  } else {
    const auto some = vector<std::uint64_t>("the size of lists");
    expect(some.size % 2 == 0, "the size of lists");
    for (std::uint64_t i = 0; i < some.size; i += 2) {
      expect(some[i] < n_lists, "the number of a list");
      sizes[some[i]] = some[i + 1];
    }
  }
  auto seen = none_seen(rows);
  for (const std::uint64_t size : sizes) {
    expect(size <= rows, "the size of a list");
    elements<std::byte>(size * code_bytes, "codes");
    numbers(elements<std::int64_t>(size, "numbers of rows"), seen);
  }
}

void Parser::blocks(std::uint64_t n_lists, std::uint64_t block_rows, std::uint64_t block_bytes,
    std::uint64_t rows) {
  expect(type() == "ilbl", "the kind of lists");
  expect(read<std::uint64_t>("lists") == n_lists, "the number of lists");
  expect(read<std::uint64_t>("lists") == kNoCodeSize, "the size of codes");
  expect(read<std::uint64_t>("lists") == block_rows, "the size of blocks");
  expect(read<std::uint64_t>("lists") == block_bytes, "the size of blocks");
  auto seen = none_seen(rows);
  for (std::uint64_t i = 0; i < n_lists; ++i) {
    const auto ids = vector<std::int64_t>("numbers of rows");
    numbers(ids, seen);
    vector<std::byte>((ids.size + block_rows - 1) / block_rows * block_bytes, "codes");
  }
}

Header Parser::lists(int depth, std::string_view name) {
  const Header h = header();
  // A trained index stores the centre of each list, which bounds the number of lists. An untrained
  // index stores none.
  const auto n_lists =
      number<std::uint64_t>(1, h.trained ? left() : kMostUntrainedLists, "the number of lists");
  read<std::uint64_t>("nprobe");  // every search sets nprobe
  const auto from = at_;
  const std::string_view finder = type();
  expect(finder == "IxFI" || finder == "IxF2" || finder == "IxFl" || finder == "IHNf",
      "the quantizer of the lists");
  at_ = from;
  const Header quantizer = index(depth);
  expect(quantizer.width == h.width && quantizer.rows == (h.trained ? n_lists : 0),
      "the quantizer of the lists");
  expect(read<std::uint8_t>("the map of rows") == 0, "the map of rows");
  vector<std::int64_t>(0, "the map of rows");
  std::uint64_t parts = 0;
  if (name == "IwFl") {
    inverted(n_lists, h.width * sizeof(float), h.rows);
  } else if (name == "IwSq") {
    const auto bytes = scalars(h);
    expect(read<std::uint64_t>("codes") == bytes, "the size of codes");
    flag("codes of residuals");
    inverted(n_lists, bytes, h.rows);
  } else if (name == "IwPQ") {
    flag("codes of residuals");
    const auto bytes = read<std::uint64_t>("codes");
    expect(codebooks(h.width, 1, 16, parts) == bytes, "the size of codes");
    inverted(n_lists, bytes, h.rows);
  } else {
    flag("codes of residuals");
    const auto bytes = read<std::uint64_t>("codes");
    const auto block = number<std::int32_t>(32, kMostBlock, "the size of blocks");
    const auto even = read<std::uint64_t>("the number of codes");
    expect(block % 32 == 0, "the size of blocks");
    expect(read<std::int32_t>("the kind of search") == 0, "the kind of search");
    number<std::uint64_t>(0, 0, "the kind of search");
    const auto code = codebooks(h.width, 4, 4, parts);
    expect(code == bytes && even == (parts + 1) / 2 * 2, "the size of codes");
    blocks(n_lists, block, block * even / 2, h.rows);
  }
  return h;
}

// Reads a transformation of vectors of `width`. `width` becomes the output width.
void Parser::transform(std::uint64_t& width) {
  const std::string_view name = type();
  std::uint64_t in = width, out = width;
  const auto sizes = [&] {
    expect(number<std::int32_t>(1, kMostWidth, "a transformation") == in, "its width");
    const auto to = number<std::int32_t>(1, kMostWidth, "a transformation");
    flag("a transformation");
    return to;
  };
  if (name == "VNrm") {
    read<float>("a norm");
    out = sizes();
    expect(out == in, "the width of a transformation");
  } else if (name == "VCnt") {
    const auto mean = vector<float>("a mean");
    out = sizes();
    expect(out == in && (mean.size == in || mean.size == 0), "the width of a transformation");
  } else if (name == "RmDT") {
    const auto map = vector<std::int32_t>("a transformation");
    out = sizes();
    expect(map.size == out, "the width of a transformation");
    for (std::uint64_t i = 0; i < map.size; ++i)
      expect(map[i] >= -1 && map[i] < static_cast<std::int64_t>(in), "a transformation");
  } else {
    expect(name == "rrot" || name == "Pcam" || name == "LTra", "the kind of a transformation");
    if (name == "Pcam") {
      read<float>("a transformation"), read<float>("a transformation");
      flag("a transformation"), read<std::int32_t>("a transformation");
      for (int i = 0; i < 3; ++i) vector<float>("a transformation");
    }
    const bool bias = flag("a transformation");
    const auto matrix = vector<float>("a matrix"), shift = vector<float>("a matrix");
    out = sizes();
    // An untrained transformation has no data.
    const bool learned = matrix.size > 0 || shift.size > 0;
    expect(!learned || (matrix.size == in * out && (!bias || shift.size == out)),
        "the size of a matrix");
    untrained_ = untrained_ || !learned;
  }
  width = out;
}

Header Parser::transformed(int depth) {
  const Header h = header();
  const auto n = number<std::int32_t>(1, kMostTransforms, "the number of transformations");
  std::uint64_t width = h.width;
  untrained_ = false;
  for (std::uint64_t i = 0; i < n; ++i) transform(width);
  expect(h.rows == 0 || !untrained_, "a matrix");
  const Header below = index(depth);
  expect(below.width == width && below.rows == h.rows, "the index after a transformation");
  return h;
}

Header Parser::refined(int depth) {
  const Header h = header();
  const Header base = index(depth), fine = index(depth);
  expect(base.width == h.width && fine.width == h.width && base.rows == h.rows &&
             fine.rows == h.rows && fine.metric == h.metric,
      "a refinement");
  const auto factor = read<float>("a refinement");
  expect(factor >= 1 && factor <= kMostRefined, "a refinement");
  return h;
}

}  // namespace

void check_index_bytes(
    std::span<const std::byte> bytes, const std::string& origin, std::uint64_t rows) {
  Parser(bytes, origin).whole(rows);
}

}  // namespace store
