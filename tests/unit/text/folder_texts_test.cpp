#include "text/documents/text_source.h"

#include <sys/stat.h>

#include <filesystem>

#include "unit/temporary_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;
using NamesOfTexts = std::vector<std::string>;

}  // namespace

DOCTEST_TEST_CASE("the texts below a folder, by the bytes of their paths; what is none is told") {
  const TemporaryFolder folder;
  for (const char* name : {"b", "a/z", "a/deep", ".git"})
    fs::create_directories(folder.path / name);
  for (const char* name :
      {"b/1.txt", "a/z/2.txt", "a/deep/3.txt", "a.txt", "B.txt", "a/\xC3\xA4.txt"})
    core::write_file(folder / name, "text\n");
  core::write_file(folder / "empty.txt", "");
  core::write_file(folder / "a/\xE4.txt", "Latin-1's name\n");
  core::write_file(folder / ".git/config", "hidden");
  core::write_file(folder / "a/.hidden", "hidden");
  core::write_file(folder / "picture.png", {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16});
  core::write_file(folder / "some.pyc", {"text\0", 5});
  fs::create_symlink("a.txt", folder.path / "link.txt");
  fs::create_directory_symlink("..", folder.path / "b/up");
  ::mkfifo((folder / "pipe").c_str(), 0600);
  const auto found = text::texts_below({folder / ""});
  DOCTEST_CHECK(found.names == NamesOfTexts{"B.txt", "a.txt", "a/deep/3.txt", "a/z/2.txt",
                                   "a/\xC3\xA4.txt", "a/\xEF\xBF\xBD.txt", "b/1.txt", "empty.txt"});
  DOCTEST_REQUIRE(found.paths.size() == found.names.size());
  for (const auto& path : found.paths) DOCTEST_CHECK(core::is_regular_file(path));
  std::string notes;
  for (const auto& note : found.notes) notes += note + "\n";
  for (const char* part : {"and 1 more: left out: hidden", "and 1 more: left out: a link",
           "pipe: left out: not a regular file", "picture.png and 1 more: left out: no text"})
    DOCTEST_CHECK(notes.find(part) != notes.npos);
  // Several folders in sequence, also without a slash.
  DOCTEST_CHECK(text::texts_below({(folder.path / "b").string(), folder / "a/deep"}).names ==
                NamesOfTexts{"1.txt", "3.txt"});
}

DOCTEST_TEST_CASE("what is no folder, or has no text, is refused") {
  const TemporaryFolder folder;
  DOCTEST_CHECK(thrown([&] { text::texts_below({folder / ""}); }).names("has no text"));
  core::write_file(folder / "rows", std::string("PAR1\x15\x04", 6));
  DOCTEST_CHECK(thrown([&] { text::texts_below({folder / ""}); }).names("rows: left out: no text"));
  core::write_file(folder / "a.txt", "text");
  DOCTEST_CHECK(thrown([&] { text::texts_below({folder / "a.txt"}); }).code == 66);
  DOCTEST_CHECK(thrown([&] { text::texts_below({folder / "nowhere"}); }).code == 66);
  core::write_file(folder / "a\nb", "text");
  DOCTEST_CHECK(
      thrown([&] { text::texts_below({folder / ""}); }).names("is not a valid document name"));
}
