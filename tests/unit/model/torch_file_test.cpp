// Files of torch.save, read without running them: every kind of value, both forms, views of shared
// storages, hostile pickles, and truncation at every byte.

#include "model/pickle/torch_file.h"

#include "folder_of_test.h"
#include "torch_bytes.h"

namespace {

using core::Code;
using model::PickleKind;
using namespace torch_bytes;

core::Bytes bytes_in(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

model::Pickle read_pickle(const std::string& text) {
  const core::Bytes bytes = bytes_in(text);
  return model::unpickle(core::RandomMemory(bytes), 0, bytes.size());
}

void refused(const std::string& part, const std::string& text) {
  expect_error(Code::bad_data, part, [&] { read_pickle(text); });
}

model::TorchFile open(const std::string& text) {
  return model::TorchFile(std::make_unique<OwnedMemory>(bytes_in(text)));
}

const std::vector<float> kSix = {0, 1, 2, 3, 4, 5};

}  // namespace

DOCTEST_TEST_CASE("constants of every width and sign") {
  const auto whole_of = [](const std::string& value) {
    const auto pickle = read_pickle(value + ".");
    DOCTEST_CHECK(pickle.root().kind == PickleKind::integer);
    return pickle.root().integer;
  };
  DOCTEST_CHECK(whole_of("K\xff") == 255);
  DOCTEST_CHECK(whole_of("M" + number(65535, 2)) == 65535);
  DOCTEST_CHECK(whole_of(whole(-2)) == -2);
  DOCTEST_CHECK(whole_of(std::string("\x8a\x00", 2)) == 0);
  DOCTEST_CHECK(whole_of("\x8a\x01\xff") == -1);
  DOCTEST_CHECK(whole_of("\x8a\x02" + number(0x8000, 2)) == -32768);
  DOCTEST_CHECK(whole_of("\x8a\x08" + number(1ull << 62, 8)) == std::int64_t{1} << 62);
  DOCTEST_CHECK(whole_of("\x8b" + number(3, 4) + number(0x7fffff, 3)) == 0x7fffff);
  const auto wide = read_pickle("\x8a\x09" + std::string(9, '\x01') + ".");
  DOCTEST_CHECK(wide.root().kind == PickleKind::big_integer);
  const auto real = read_pickle("G" + std::string("\x3f\xf8\0\0\0\0\0\0", 8) + ".");
  DOCTEST_CHECK(real.root().real == 1.5);
  DOCTEST_CHECK(read_pickle("N.").root().kind == PickleKind::none);
  DOCTEST_CHECK(read_pickle("\x88.").root().integer == 1);
  DOCTEST_CHECK(read_pickle("\x89.").root().kind == PickleKind::boolean);
  for (const auto& said : {unicode("ab"), std::string("\x8c\x02") + "ab",
           std::string("\x8d") + number(2, 8) + "ab", std::string("U\x02") + "ab"}) {
    const auto pickle = read_pickle(said + ".");
    DOCTEST_CHECK(pickle.root().kind == PickleKind::text);
    DOCTEST_CHECK(pickle.root().text == "ab");
  }
  const auto bytes = read_pickle("C\x02" + std::string("ab."));
  DOCTEST_CHECK(bytes.root().kind == PickleKind::bytes);
}

DOCTEST_TEST_CASE("lists, tuples, sets, dicts, and what stands in the memo") {
  // The list is put into the memo and read again.
  const auto pickle = read_pickle(
      dict({{unicode("list"), list({whole(1), "N"}) + "q\x05"}, {unicode("again"), "h\x05"},
          {unicode("twice"), whole(1)}, {unicode("twice"), whole(2)},
          {unicode("three"), whole(1) + whole(2) + whole(3) + "\x87"},
          {unicode("set"), "\x8f(" + whole(1) + "\x90"}}) +
      ".");
  const auto& root = pickle.root();
  DOCTEST_REQUIRE(root.kind == PickleKind::dict);
  DOCTEST_REQUIRE(root.find("list") != nullptr);
  DOCTEST_CHECK(root.find("list")->items.size() == 2);
  DOCTEST_CHECK(root.find("again") == root.find("list"));
  DOCTEST_CHECK(root.find("twice")->integer == 2);
  DOCTEST_CHECK(root.find("three")->items[2]->integer == 3);
  DOCTEST_CHECK(root.find("none") == nullptr);
  // Old Pythons passed an OrderedDict its pairs at once.
  const auto old = read_pickle(global("collections", "OrderedDict") +
                               tuple({list({list({unicode("a"), whole(7)})})}) + "R.");
  DOCTEST_CHECK(old.root().find("a")->integer == 7);
}

DOCTEST_TEST_CASE("a call is data: os.system is a name with an argument") {
  const auto pickle = read_pickle(
      dict({{unicode("bad"), global("os", "system") + tuple({unicode("touch /tmp/was-run")}) + "R"},
          {unicode("good"), whole(1)}}) +
      ".");
  DOCTEST_CHECK(pickle.root().find("good")->integer == 1);
  const auto& bad = *pickle.root().find("bad");
  DOCTEST_CHECK(bad.kind == PickleKind::call);
  DOCTEST_REQUIRE(bad.arguments_of("os system") != nullptr);
  DOCTEST_CHECK(bad.arguments_of("os system")->items[0]->text == "touch /tmp/was-run");
  DOCTEST_CHECK(!model::TorchFile::is_tensor(bad));
  DOCTEST_CHECK(!std::filesystem::exists("/tmp/was-run"));
  // An object by its class's name, with the arguments of __setstate__.
  const auto made = read_pickle(
      global("argparse", "Namespace") + ")\x81" + dict({{unicode("lr"), whole(3)}}) + "b.");
  DOCTEST_CHECK(made.root().items[0]->is_global("argparse Namespace"));
  DOCTEST_CHECK(made.root().state->find("lr")->integer == 3);
  // Protocol 4 gives names as texts.
  const auto by_text =
      read_pickle("\x80\x04\x95" + number(9, 8) + unicode("a") + unicode("b") + "\x93.");
  DOCTEST_CHECK(by_text.root().is_global("a b"));
}

DOCTEST_TEST_CASE("a number of NumPy's is a number; of another type or size it stays a call") {
  const auto scalar = [](const std::string& type, const std::string& order, const std::string& data,
                          const std::string& module = "numpy._core.multiarray") {
    const auto dtype = global("numpy", "dtype") + tuple({unicode(type), "\x89", "\x88"}) + "R" +
                       tuple({whole(3), unicode(order), "N"}) + "b";
    return read_pickle(global(module, "scalar") + tuple({dtype, data}) + "R.");
  };
  const auto raw = [](const std::string& bytes) {
    return "C" + std::string(1, static_cast<char>(bytes.size())) + bytes;
  };
  const auto encoded = [](const std::string& latin1) {
    return global("_codecs", "encode") + tuple({unicode(latin1), unicode("latin1")}) + "R";
  };
  const auto real = scalar("f8", "<", raw(std::string("\0\0\0\0\0\0\xf8\x3f", 8)));
  DOCTEST_CHECK(real.root().kind == PickleKind::real);
  DOCTEST_CHECK(real.root().real == 1.5);
  DOCTEST_CHECK(scalar("f4", "<", raw(std::string("\0\0\x20\x40", 4))).root().real == 2.5);
  // As in protocol 2: a character per byte.
  DOCTEST_CHECK(
      scalar("f8", "<", encoded(std::string("\0\0\0\0\0\0\xc3\xb8?", 9))).root().real == 1.5);
  const auto negative = scalar("i2", "<", encoded("\xc3\xbd\xc3\xbf"), "numpy.core.multiarray");
  DOCTEST_CHECK(negative.root().kind == PickleKind::integer);
  DOCTEST_CHECK(negative.root().integer == -3);
  DOCTEST_CHECK(scalar("u2", "<", raw("\xfd\xff")).root().integer == 65533);
  DOCTEST_CHECK(scalar("b1", "|", raw("\x01")).root().kind == PickleKind::boolean);
  for (const auto& other : {scalar("f8", ">", raw(std::string(8, '\1'))),
           scalar("f8", "<", raw("\1\1")), scalar("f2", "<", raw("\1\1")),
           scalar("c8", "<", raw(std::string(8, '\1'))), scalar("i8", "<", encoded("\xe2\x82\xac")),
           scalar("i8", "<", "N"), scalar("u8", "<", raw(std::string(8, '\xff')))})
    DOCTEST_CHECK(other.root().kind == PickleKind::call);
}

DOCTEST_TEST_CASE("malformed pickles say where") {
  refused("byte 0 of a pickle: cut short", "");
  refused("cut short", "N");
  refused("an empty stack", ".");
  refused("an empty stack", "(.");
  refused("an empty stack", "R.");
  refused("no mark on the stack", "t.");
  refused("3 is not in its memo", "h\x03.");
  refused("protocol 9", "\x80\x09N.");
  refused("opcode 0x69 is not supported", "ios\nsystem\n.");
  refused("opcode 0x97 is not supported", "\x97.");
  refused("elements of a value that is not a container", "NNa.");
  refused("elements of a value that is not a container", "](N" + whole(1) + "u.");
  refused("elements of a value that is not a container", "}(Nu.");
  refused("a key without a value", "(Nd.");
  refused("a class whose name is not a text", "NN\x93.");
  // A length beyond the file allocates no memory.
  refused("cut short", "\x8d" + number(~0ull, 8) + "ab");
  refused("cut short", "X" + number(0xffffffff, 4) + "ab");
  refused("more than", std::string(model::kMostPickleValues + 10, 'N') + ".");
  refused("more than", std::string(model::kMostPickleValues + 10, '(') + ".");
  refused("more than", "N" + std::string(model::kMostPickleValues + 10, '2') + ".");
  // A long text in the memo, as the name of many classes.
  std::string names = unicode(std::string(100'000, 'a')) + "q" + number(0, 1);
  for (int i = 0; i < 200; ++i) names += "h" + number(0, 1) + "h" + number(0, 1) + "\x93" + "0";
  refused("names of classes of more than", names + ".");
}

DOCTEST_TEST_CASE(
    "tensors of every type, their own or a part of one that is shared, in both forms") {
  struct Case {
    std::string type;
    torch::Tensor values;
  };
  const auto base = torch::arange(6, torch::kFloat64) - 2;
  const std::vector<Case> cases = {{"FloatStorage", base.to(torch::kFloat32)},
      {"DoubleStorage", base}, {"HalfStorage", base.to(torch::kFloat16)},
      {"BFloat16Storage", base.to(torch::kBFloat16)}, {"LongStorage", base.to(torch::kInt64)},
      {"IntStorage", base.to(torch::kInt32)}, {"ShortStorage", base.to(torch::kInt16)},
      {"CharStorage", base.to(torch::kInt8)}, {"ByteStorage", base.abs().to(torch::kUInt8)},
      {"BoolStorage", base > 0}};
  for (const auto& [type, values] : cases) {
    DOCTEST_CAPTURE(type);
    const std::string bytes(static_cast<const char*>(values.data_ptr()), values.nbytes());
    const auto value = dict({{unicode("all"), tensor(type, "0", 6, 0, {2, 3}, {3, 1})},
        {unicode("turned"), tensor(type, "0", 6, 0, {3, 2}, {1, 3})},
        {unicode("part"), tensor(type, "0", 6, 1, {2}, {2})},
        {unicode("one"), tensor(type, "0", 6, 5, {}, {})},
        {unicode("none"), tensor(type, "0", 6, 0, {0, 5}, {5, 1})},
        {unicode("parameter"),
            global("torch._utils", "_rebuild_parameter") +
                tuple({tensor(type, "0", 6, 3, {3}, {1}), "\x88", ordered_dict({})}) + "R"}});
    for (const auto& file : {archive(value, {{"0", bytes}}), archive(value, {{"0", bytes}}, true),
             stream(value, {{"0", 6, bytes}})}) {
      const auto opened = open(file);
      const auto read = [&](const char* name) {
        return opened.read(*opened.root().find(name), name);
      };
      DOCTEST_CHECK(read("all").equal(values.view({2, 3})));
      DOCTEST_CHECK(read("turned").equal(values.view({2, 3}).t()));
      DOCTEST_CHECK(read("turned").is_contiguous());
      DOCTEST_CHECK(read("part").equal(torch::stack({values[1], values[3]})));
      DOCTEST_CHECK(read("one").equal(values[5]));
      DOCTEST_CHECK(read("none").sizes() == torch::IntArrayRef({0, 5}));
      DOCTEST_CHECK(read("parameter").equal(values.slice(0, 3)));
      const auto place = [&](const char* name) {
        return opened.place(*opened.root().find(name), name);
      };
      DOCTEST_CHECK((place("all") == place("all")));
      DOCTEST_CHECK(!(place("all") == place("turned")));
    }
  }
}

DOCTEST_TEST_CASE("a stream's storage may be a view of another") {
  const auto view = tuple({unicode("9"), whole(2), whole(3)});
  const auto value = dict({{unicode("a"), tensor("FloatStorage", "0", 6, 1, {2}, {1}, view)},
      {unicode("b"), tensor("FloatStorage", "0", 6, 1, {2}, {1}, "N")}});
  const auto file = open(stream(value, {{"0", 6, bytes_of(kSix)}}));
  DOCTEST_CHECK(file.read(*file.root().find("a"), "a").equal(torch::tensor({3.f, 4.f})));
  DOCTEST_CHECK(file.read(*file.root().find("b"), "b").equal(torch::tensor({1.f, 2.f})));
}

DOCTEST_TEST_CASE("tensors that do not lie in their storage are refused, whatever they claim") {
  const auto refuses = [](const std::string& part, const std::string& value) {
    const auto file = open(archive(value, {{"0", bytes_of(kSix)}}));
    expect_error(Code::bad_data, part, [&] { file.read(file.root(), "w"); });
  };
  const std::int64_t huge = std::int64_t{1} << 40, most = std::int64_t{1} << 52;
  refuses("storage of 6 elements", tensor("FloatStorage", "0", 6, 0, {7}, {1}));
  refuses("storage of 6 elements", tensor("FloatStorage", "0", 6, 1, {6}, {1}));
  refuses("storage of 6 elements", tensor("FloatStorage", "0", 6, -1, {2}, {1}));
  refuses("storage of 6 elements", tensor("FloatStorage", "0", 6, 0, {2, 2}, {5, 1}));
  refuses("storage of 6 elements", tensor("FloatStorage", "0", 6, 0, {huge}, {0}));
  refuses("storage of 6 elements", tensor("FloatStorage", "0", 6, 0, {most, most}, {0, 0}));
  refuses("storage of 6 elements", tensor("FloatStorage", "0", 6, 0, {0, most, most}, {1, 1, 1}));
  refuses("storage of 6 elements", tensor("FloatStorage", "0", 6, 0, {2}, {most}));
  refuses("storage of 3 elements", tensor("DoubleStorage", "0", 6, 0, {4}, {1}));
  refuses("the number of strides is 1; allowed: 2", tensor("FloatStorage", "0", 6, 0, {2, 1}, {1}));
  refuses("is not an integer", tensor("FloatStorage", "0", 6, 0, {-1}, {1}));
  refuses("its storage 1 is missing", tensor("FloatStorage", "1", 6, 0, {2}, {1}));
  refuses("torch ComplexStorage, which is not supported",
      tensor("ComplexStorage", "0", 6, 0, {2}, {1}));
  refuses("w: not a tensor", whole(3));
  refuses(
      "w: not a tensor", global("torch._utils", "_rebuild_tensor_v2") + tuple({whole(1)}) + "R");
  refuses("w: not a tensor", global("os", "system") + tuple({unicode("ls")}) + "R");
}

DOCTEST_TEST_CASE("what is no file of torch.save is told by what is wrong with it") {
  const auto refuses = [](const std::string& part, const std::string& text) {
    expect_error(Code::bad_data, part, [&] { open(text); });
  };
  refuses("not a file of torch.save", "");
  refuses("not a file of torch.save", "{\"model_type\": \"gpt2\"}");
  refuses("a pickle, but not one of torch.save", pickle(dict({{unicode("a"), whole(1)}})));
  refuses("not a file of torch.save", zip({{"a.txt", "b"}}));
  refuses("byte order \"big\"", zip({{"m/data.pkl", pickle("N")}, {"m/byteorder", "big"}}));
  refuses("occurs twice", zip({{"m/data.pkl", pickle("N")}, {"m/data.pkl", pickle("N")}}));
  auto packed = zip({{"m/data.pkl", pickle("N")}});
  packed[packed.find("PK\x01\x02") + 10] = 8;
  refuses("m/data.pkl is compressed, which torch.save", packed);
  auto far = zip({{"m/data.pkl", pickle("N")}}, true);
  far[far.find("PK\x06\x07") + 14] = 1;
  refuses("malformed", far);
}

DOCTEST_TEST_CASE("cut anywhere, a file is refused or a tensor is missing; nothing else happens") {
  const auto value =
      ordered_dict({{unicode("w"), tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1})},
          {unicode("n"), whole(4)}});
  for (const auto& whole_file :
      {archive(value, {{"0", bytes_of(kSix)}}), archive(value, {{"0", bytes_of(kSix)}}, true),
          stream(value, {{"0", 6, bytes_of(kSix)}})}) {
    DOCTEST_CHECK(open(whole_file).root().find("n")->integer == 4);
    for (std::size_t n = 0; n < whole_file.size(); ++n)
      expect_error(Code::bad_data, "", [&] { open(whole_file.substr(0, n)); });
  }
}
