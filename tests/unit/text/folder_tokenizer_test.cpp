// A tokenizer by the path of a folder, and messages about other paths.

#include <doctest/doctest.h>

#include <filesystem>

#include "text/formats/tokenizer_json.h"
#include "unit/temporary_folder.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

namespace {

/// A piece of a tokenizer.model with a score.
std::string piece_proto(const std::string& text, char type) {
  const std::string inside = std::string{'\x0a', static_cast<char>(text.size())} + text + '\x15' +
                             std::string(4, '\0') + '\x18' + type;
  return std::string{'\x0a', static_cast<char>(inside.size())} + inside;
}

}  // namespace

DOCTEST_TEST_CASE("-t FOLDER is the folder's tokenizer") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path, int code, const std::string& part) {
    const auto error = thrown([&] { text::load_tokenizer(path); });
    DOCTEST_CHECK_MESSAGE(error.code == code, error.text);
    DOCTEST_CHECK_MESSAGE(error.text.find(part) != std::string::npos, error.text);
  };
  const std::string expected = text::load_tokenizer(sample::kFolder + "bpe.json")->json();
  std::filesystem::create_directory(folder / "m");
  std::filesystem::copy_file(sample::kFolder + "bpe.json", folder / "m/tokenizer.json");
  DOCTEST_CHECK(text::load_tokenizer(folder / "m")->json() == expected);
  // The root of a hub's cache is its snapshot.
  std::filesystem::create_directories(folder / "models--a--b/snapshots/1");
  std::filesystem::copy_file(
      sample::kFolder + "bpe.json", folder / "models--a--b/snapshots/1/tokenizer.json");
  DOCTEST_CHECK(text::load_tokenizer(folder / "models--a--b")->json() == expected);
  folder.file("two/vocab.json", R"({"a":0,"b":1,"ab":2})");
  folder.file("two/merges.txt", "#version: 0.2\na b\n");
  DOCTEST_CHECK(text::load_tokenizer(folder / "two")->size() == 3);
  folder.file("two/tokenizer_config.json", R"({"tokenizer_class":"Qwen2Tokenizer"})");
  refused(folder / "two", 65, "Qwen2Tokenizer");
  folder.file("spm/tokenizer.model", "\x0a\x0e\x0a\x05<unk>\x15");
  refused(
      folder / "spm", 65, "tokenizer.model: not a tokenizer.model of sentencepiece, or damaged");
  refused(folder / "spm/tokenizer.model", 65, "cut short");
  // A name tells what the file is, whatever its unknown piece is called.
  const auto model = piece_proto("[UNK]", 2) + piece_proto("a", 1);
  folder.file("named/tokenizer.model", model);
  DOCTEST_CHECK(text::load_tokenizer(folder / "named")->token(0) == "[UNK]");
  DOCTEST_CHECK(text::load_tokenizer(folder.file("x.model", model))->token(1) == "a");
  // Without its score the first piece looks like no model.
  const std::string bare = "\x0a\x09\x0a\x05[UNK]\x18\x02" + piece_proto("a", 1);
  DOCTEST_CHECK(text::load_tokenizer(folder.file("y.model", bare))->size() == 2);
  refused(folder.file("z.model", ""), 65, "it has no pieces");
  folder.file("ranks/tokenizer.model", "IQ== 0\nIg== 1\n");
  refused(folder / "ranks", 65, "tokenizer.model: tiktoken's ranks");
  folder.file("pointer/tokenizer.model", "version https://git-lfs.github.com/spec/v1\n");
  refused(folder / "pointer", 65, "is a Git LFS pointer");
  folder.file("none/config.json", "{}");
  refused(folder / "none", 66, "has no tokenizer; give a tokenizer.json");
  refused("someorg/some-model", 66, "hf download someorg/some-model");
  folder.file("x.gguf", std::string("GGUF\3\0\0\0", 8));
  refused(folder / "x.gguf", 65, "model import " + (folder / "x.gguf") + " -o DIR");
}
