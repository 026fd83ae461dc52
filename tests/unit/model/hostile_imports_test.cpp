// Checkpoints that no trainer writes: a few bytes that ask for much work or memory are refused
// beforehand. Time and memory follow from the size of the file.

#include <unistd.h>

#include <cstdlib>

#include "core/file_text.h"
#include "counted_memory.h"
#include "folder_of_test.h"
#include "model/import_model.h"
#include "model/pickle/torch_file.h"
#include "nn/base/runtime.h"
#include "small_checkpoints.h"

namespace {

using core::Code;
using namespace small_checkpoints;

/// Ends the process if a reader does not end.
struct Deadline {
  Deadline() { ::alarm(60); }
  ~Deadline() { ::alarm(0); }
};

std::unique_ptr<OwnedMemory> source_of(const std::string& bytes) {
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  return std::make_unique<OwnedMemory>(core::Bytes(begin, begin + bytes.size()));
}

/// Reads it as a checkpoint, with tensor memory limited by its own bytes.
void hostile(const std::string& says, const std::string& bytes) {
  const Deadline deadline;
  const CountedMemory memory;
  expect_error(Code::bad_data, says, [&] {
    const model::TorchFile file(source_of(bytes));
    model::read_checkpoint(file);
  });
  DOCTEST_CHECK(memory.most() < std::int64_t{8} << 20);
}

/// Returns a fairseq checkpoint with these tensors, and with settings that precede the usual ones.
std::string fairseq(const std::vector<std::pair<std::string, Shape>>& shapes,
    const std::vector<std::pair<std::string, std::int32_t>>& settings = {}) {
  Floats floats;
  const auto weights = tensors(floats, shapes);
  return fairseq_of(floats, weights, wholes(settings));
}

std::string repeated(const std::string& value, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += value;
  return out;
}

std::string put(int n) { return "q" + number(static_cast<std::uint64_t>(n), 1); }
std::string get(int n) { return "h" + number(static_cast<std::uint64_t>(n), 1); }

}  // namespace

DOCTEST_TEST_CASE("small checkpoints of each program become models") {
  const bool write = std::getenv("TESSERA_WRITE_SEEDS") != nullptr;
  const std::string seeds = "tests/fuzz/corpus/import/";
  for (const auto& [name, bytes] : all()) {
    DOCTEST_CAPTURE(name);
    if (write) overwrite(seeds + name, bytes);
    DOCTEST_CHECK_MESSAGE(core::read_file(seeds + name, 1 << 20) == bytes,
        "TESSERA_WRITE_SEEDS=1 writes the seeds anew");
    const TemporaryFolder folder;
    if (!bytes.starts_with('{')) {
      const model::TorchFile file(source_of(bytes));
      DOCTEST_CHECK(model::made_of(model::read_checkpoint(file), name)->parameter_count() > 0);
      continue;
    }
    const auto line = bytes.find('\n');
    overwrite(folder / "config.json", bytes.substr(0, line));
    overwrite(folder / "pytorch_model.bin", bytes.substr(line + 1));
    DOCTEST_CHECK(model::import_model(folder.path, {}, folder / "out").program == "transformers");
  }
}

DOCTEST_TEST_CASE("modules that others share are not walked once for each way to them") {
  // 30 levels of a module that holds the next lower one eight times.
  std::string below = module("Leaf", {}, {}, {});
  for (int level = 0; level < 30; ++level) {
    Pairs children = {{unicode("0"), below + put(level)}};
    for (int i = 1; i < 8; ++i) children.emplace_back(unicode(std::to_string(i)), get(level));
    below = module(level == 29 ? "MemTransformerLM" : "Level", {}, {}, children);
  }
  hostile("its modules are too many", Floats().save(below));
  // The name of one module, repeated.
  const auto name = unicode(std::string(1 << 16, 'a'));
  std::string more;
  for (int i = 0; i < 600; ++i) more += get(0) + get(1);
  const auto weights = global("collections", "OrderedDict") + ")R(" + name + put(0) +
                       Floats()({1}) + put(1) + more + "u";
  hostile("its modules are too many", Floats().save(object("mem_transformer", "MemTransformerLM",
                                          {{unicode("_parameters"), weights}})));
}

DOCTEST_TEST_CASE("a list that is given many times is not looked at many times") {
  const std::size_t n = 3000;
  const auto ordered = global("collections", "OrderedDict");
  const auto elements = list({repeated("N", n)}) + put(0);
  hostile("more than 1048576 values",
      Floats().save(ordered + tuple({elements, repeated(get(0), n)}) + "R"));
  // One tuple of empty lists, given to many dicts.
  const auto lists = tuple({repeated("]", n)}) + put(0);
  hostile("more than 1048576 values",
      Floats().save(ordered + put(1) + lists + "R" + repeated("0" + get(1) + get(0) + "R", n)));
  // A text of a megabyte as NumPy's number, repeatedly: it is not copied.
  const Deadline deadline;
  const auto scalar = global("numpy.core.multiarray", "scalar");
  const auto dtype = global("numpy", "dtype") + tuple({unicode("i8"), "\x89", "\x88"}) + "R" +
                     tuple({whole(3), unicode("<"), "N"}) + "b";
  const auto long_bytes = "B" + number(1 << 20, 4) + std::string(1 << 20, 'x');
  const auto bytes = pickle(scalar + put(0) + tuple({dtype, long_bytes}) + put(1) + "R" +
                            repeated("0" + get(0) + get(1) + "R", 200'000));
  DOCTEST_CHECK(
      model::unpickle(*source_of(bytes), 0, bytes.size()).root().kind == model::PickleKind::call);
}

DOCTEST_TEST_CASE("a long name or key that is said again and again is not copied each time") {
  const auto name = unicode(std::string(1 << 20, 'a'));
  const auto weights = global("collections", "OrderedDict") + ")R(" + name + put(0) + "N" +
                       repeated(get(0) + "N", 200'000) + "u";
  hostile("the name of a tensor has",
      Floats().save(dict({{unicode("model"), weights}, {unicode("model_args"), "}"}})));
  const auto key = unicode(std::string(1 << 20, '0'));
  const auto id =
      tuple({unicode("storage"), global("torch", "FloatStorage"), key, unicode("cpu"), whole(1)});
  hostile(
      "not a checkpoint of", Floats().save(list({id + put(0), repeated(get(0) + "Q", 200'000)})));
}

DOCTEST_TEST_CASE("columns of a matrix are not read many times over") {
  Pairs weights;
  for (int i = 0; i < 2000; ++i)
    weights.emplace_back(unicode("transformer.x" + std::to_string(i)),
        tensor("FloatStorage", "0", 0, 0, {2}, {(1 << 19) - 1}));
  weights.emplace_back(
      unicode("transformer.wte.weight"), tensor("FloatStorage", "0", 0, 0, {3, 2}, {2, 1}));
  const auto settings =
      wholes({{"n_layer", 1}, {"n_head", 1}, {"n_embd", 2}, {"block_size", 4}, {"vocab_size", 3}});
  hostile("overlap", stream(dict({{unicode("model"), ordered_dict(weights)},
                                {unicode("model_args"), dict(settings)}}),
                         {{"0", 1 << 19, std::string(4 << 19, '\0')}}));
}

DOCTEST_TEST_CASE("a Transformer-XL's products and identities are bounded by its file") {
  // The reader looks this far before it allocates anything.
  const auto words_of = [](std::int32_t d_model, const Shape& table, const Shape& projection,
                            const std::vector<std::string>& cutoffs) {
    Floats floats;
    const auto holding = [&](const std::string& name, const Shape& shape) {
      return module("Linear", {}, tensors(floats, {{name, shape}}), {});
    };
    const auto tables = module("ModuleList", {}, {}, {{unicode("0"), holding("weight", table)}});
    const auto own = joined(wholes({{"n_token", static_cast<std::int32_t>(table[0])},
                                {"d_embed", static_cast<std::int32_t>(table[1])}}),
        {{unicode("cutoffs"), list(cutoffs)}});
    Pairs parts = {{unicode("emb_layers"), tables}};
    if (!projection.empty()) parts.emplace_back(unicode("emb_projs"), holding("0", projection));
    const auto core =
        module("Sequential", {}, {}, {{unicode("0"), holding("weight", {1, d_model})}});
    const auto layer = module("Layer", {}, {},
        {{unicode("dec_attn"), module("Attention", {}, {}, {})},
            {unicode("pos_ff"), module("FF", {}, {}, {{unicode("CoreNet"), core}})}});
    return floats.save(module("MemTransformerLM",
        wholes({{"n_layer", 1}, {"d_model", d_model}, {"n_head", 1}, {"d_head", d_model},
            {"mem_len", 4}}),
        {},
        {{unicode("word_emb"), module("AdaptiveEmbedding", own, {}, parts)},
            {unicode("layers"), module("ModuleList", {}, {}, {{unicode("0"), layer}})}}));
  };
  hostile("word_emb.emb_layers would have shape (3000, 2500)",
      words_of(2500, {3000, 1}, {2500, 1}, {}));
  hostile("a band's projection would have shape (2300, 2300)",
      words_of(2300, {4, 2300}, {}, {whole(1), whole(2), whole(4)}));
  hostile("the cutoffs of its 4 tokens are inconsistent",
      words_of(2, {4, 2}, {}, {whole(2), whole(2), whole(4)}));
  hostile("the cutoffs of its 100 tokens are inconsistent", words_of(2, {100, 2}, {}, [] {
    std::vector<std::string> many;
    for (int i = 1; i <= 100; ++i) many.push_back(whole(i));
    return many;
  }()));
  hostile("no tensor crit.out_layers.0.weight", words_of(2, {4, 2}, {}, {whole(2), whole(4)}));
}

DOCTEST_TEST_CASE("fairseq's tables and products are bounded by its file, and shapes looked at") {
  const std::string words = "decoder.embed_tokens.weight",
                    band = "decoder.embed_tokens.embeddings.";
  hostile("embed_tokens.weight has shape (), not 2 dimensions", fairseq({{words, {}}}));
  hostile("embed_tokens.weight has shape (4), not 2 dimensions", fairseq({{words, {4}}}));
  hostile(
      "embeddings.0.0.weight has shape (), not 2 dimensions", fairseq({{band + "0.0.weight", {}}}));
  hostile("embeddings.0.0.weight has no rows",
      fairseq({{band + "0.0.weight", {0, 2}}, {band + "1.0.weight", {2, 2}}}));
  hostile("the table of max_target_positions would have shape (1048576, 1000)",
      fairseq({{words, {1, 2}}}, {{"max_target_positions", 1 << 20}, {"decoder_embed_dim", 1000}}));
  hostile(
      "memory: layers: takes 1 to 10K, not 0", fairseq({{words, {1, 2}}}, {{"decoder_layers", 0}}));
  hostile("d-model: takes 1 to", fairseq({{words, {1, 2}}}, {{"decoder_embed_dim", -1}}));
  hostile("embeddings.0.0.weight would have shape (3000, 2500)",
      fairseq({{band + "0.0.weight", {3000, 1}}, {band + "0.1.weight", {2500, 1}}}));
  hostile("does not match a projection",
      fairseq({{band + "0.0.weight", {3, 1}}, {band + "0.1.weight", {2}}}));
  // A table of ordinary length is read.
  const model::TorchFile file(source_of(fairseq_plain()));
  DOCTEST_CHECK(model::read_checkpoint(file).options.transformer.context == 4);
}

DOCTEST_TEST_CASE("memory that is not there is told from tensors that do not go together") {
  const auto is_memory = [](const auto& body) {
    try {
      body();
    } catch (const c10::Error& error) { return nn::is_out_of_memory(error); }
    return false;
  };
  DOCTEST_CHECK(is_memory([] {
    TORCH_CHECK(
        false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.");
  }));
  DOCTEST_CHECK(is_memory([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA"); }));
  DOCTEST_CHECK(!is_memory([] { torch::ones({2, 3}).mm(torch::ones({2, 3})); }));
}
