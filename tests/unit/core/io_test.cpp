#include "core/io.h"
#include "core/unnamed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/plain_text.h"
#include "core/temporary_file.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;

struct Folder : TemporaryFolder {
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

}  // namespace

DOCTEST_TEST_CASE("an output appears whole under its name, or not at all") {
  const Folder folder;
  const std::string path = folder.path / "x";
  {
    core::Output out(path);
    out.write("half");
    out.flush();
    DOCTEST_CHECK(!fs::exists(path));
  }
  DOCTEST_CHECK(folder.files() == 0);

  core::write_file(path, "old");
  {
    core::Output out(path);
    const std::string large(1'000'000, 'a');
    out.write("b");
    out.write(large);
    out.write("c");
    DOCTEST_CHECK(core::read_text(path) == "old");
    out.commit();
    DOCTEST_CHECK(core::read_text(path) == "b" + large + "c");
  }
  DOCTEST_CHECK(core::read_text(path).size() == 1'000'002);
  DOCTEST_CHECK(folder.files() == 1);
}

DOCTEST_TEST_CASE("one output at a time has a path; what a killed process left is taken over") {
  const Folder folder;
  const std::string path = folder.path / "x";
  {
    core::Output first(path);
    const auto second = thrown([&] { core::Output out(path); });
    DOCTEST_CHECK(second.code == 73);
    DOCTEST_CHECK(second.names(path + ": another process is writing it"));
    first.write("first");
    first.commit();
  }
  DOCTEST_CHECK(core::read_text(path) == "first");
  {
    std::ofstream left(path + ".tmp.tessera");
    left << std::string(1000, 'x');
  }
  core::write_file(path, "next");
  DOCTEST_CHECK(core::read_text(path) == "next");
  DOCTEST_CHECK(folder.files() == 1);
}

DOCTEST_TEST_CASE("a signal's clean-up removes what is not committed") {
  const Folder folder;
  core::write_file(folder.path / "done", "done");
  core::Output out(folder.path / "x");
  out.write("half");
  out.flush();
  DOCTEST_CHECK(folder.files() == 2);
  core::remove_temporaries();
  DOCTEST_CHECK(folder.files() == 1);
}

DOCTEST_TEST_CASE("outputs that cannot be made or written say which") {
  const auto nowhere = thrown([] { core::Output out("/nowhere/x"); });
  DOCTEST_CHECK(nowhere.code == 73);
  DOCTEST_CHECK(nowhere.names("/nowhere/x"));
  const Folder folder;
  DOCTEST_CHECK(thrown([&] {
    core::Output out(folder.path);
    out.commit();
  }).code == 73);
  core::write_file(folder.path / "file", "");
  DOCTEST_CHECK(thrown([&] { core::make_folder(folder.path / "file" / "sub"); }).code == 73);
  const auto full = thrown([] {
    core::Output out("/dev/full");
    out.write("x");
    out.commit();
  });
  DOCTEST_CHECK(full.code == 74);
  DOCTEST_CHECK(full.names("/dev/full"));
}

DOCTEST_TEST_CASE("a pipe is written in place") {
  const Folder folder;
  const std::string path = folder.path / "pipe";
  DOCTEST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  core::Output out(path);
  out.write("through");
  out.commit();
  std::array<char, 16> text{};
  DOCTEST_CHECK(::read(reader, text.data(), text.size()) == 7);
  ::close(reader);
  DOCTEST_CHECK(fs::is_fifo(path));
}

DOCTEST_TEST_CASE("an output whose descriptor happens to be stdout's is a file like any other") {
  const Folder folder;
  const std::string path = folder.path / "x";
  const int saved = ::dup(STDOUT_FILENO);
  ::close(STDOUT_FILENO);
  {
    core::Output out(path);
    out.write("whole");
    out.commit();
  }
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  DOCTEST_CHECK(core::read_text(path) == "whole");
  DOCTEST_CHECK(folder.files() == 1);
}

DOCTEST_TEST_CASE("where an output goes") {
  const Folder folder;
  const fs::path real = folder.path / "real", link = folder.path / "link";
  fs::create_symlink("real", link);
  fs::create_symlink(link, folder.path / "chain");
  DOCTEST_CHECK(core::destination_of(real).path == real);
  DOCTEST_CHECK(
      core::destination_of(folder.path / "chain").path == real);  // although it does not exist
  core::write_file(folder.path / "chain", "through");
  DOCTEST_CHECK(core::read_text(real) == "through");
  DOCTEST_CHECK(fs::is_symlink(link));
  fs::create_symlink("circle", folder.path / "circle");
  DOCTEST_CHECK(thrown([&] { core::destination_of(folder.path / "circle"); }).code == 73);
  DOCTEST_CHECK(
      thrown([&] { core::destination_of(folder.path / std::string(256, 'x')); }).code == 73);
  for (const char* name : {"", "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
    DOCTEST_CHECK(core::destination_of(name).descriptor == 1);
  DOCTEST_CHECK(core::destination_of("/dev/fd/12").descriptor == 12);
  DOCTEST_CHECK(!core::destination_of(folder.path / "1").descriptor);
  DOCTEST_CHECK(!core::destination_of("/dev/null").descriptor);
}

DOCTEST_TEST_CASE("a temporary name fits into a folder, and differs for names that differ") {
  DOCTEST_CHECK(core::temporary_path("a/x") == "a/x.tmp.tessera");
  DOCTEST_CHECK(core::temporary_path("x", ".tmp.7") == "x.tmp.7");
  const std::string longest(243, 'x');
  DOCTEST_CHECK(core::temporary_path("a/" + longest) == "a/" + longest + ".tmp.tessera");
  const auto name_of = [](const std::string& path) {
    return fs::path(core::temporary_path(path)).filename().string();
  };
  const std::string a = name_of(longest + "ya"), b = name_of(longest + "yb");
  DOCTEST_CHECK(a.size() <= 255);
  DOCTEST_CHECK(a.ends_with(".tmp.tessera"));
  DOCTEST_CHECK(a != b);
  std::string accents;
  for (int i = 0; i < 126; ++i) accents += "\u00e9";
  for (const std::string front : {"", "x"})  // a cut within a character, and between two
    DOCTEST_CHECK(core::printable(name_of(front + accents)) == name_of(front + accents));
}

DOCTEST_TEST_CASE("a file made anew is never what stood under its name") {
  const Folder folder;
  const std::string victim = folder.path / "victim", path = folder.path / "x";
  core::write_file(victim, "victim");
  for (const bool hard : {false, true}) {
    if (hard) {
      fs::create_hard_link(victim, path);
    } else {
      fs::create_symlink(victim, path);
    }
    const int fd = core::create_file(path);
    DOCTEST_CHECK(::write(fd, "new", 3) == 3);
    DOCTEST_CHECK(core::is_same_file(fd, path));
    ::close(fd);
    DOCTEST_CHECK(core::read_text(victim) == "victim");
    DOCTEST_CHECK(core::read_text(path) == "new");
    fs::remove(path);
  }
  fs::create_directory(folder.path / "folder");
  DOCTEST_CHECK(thrown([&] { core::create_file(folder.path / "folder"); }).code == 73);
  fs::create_directory_symlink(folder.path / "folder", path);
  DOCTEST_CHECK(thrown([&] { core::make_new_folder(path); }).code == 73);
}

DOCTEST_TEST_CASE("inputs that are not there") {
  DOCTEST_CHECK(thrown([] { core::open_source("/nowhere/x"); }).code == 66);
  DOCTEST_CHECK(thrown([] { core::open_source("/tmp"); }).code == 66);
  DOCTEST_CHECK(thrown([] { core::RandomFile file("/dev/null"); }).code == 66);
  core::MemorySource source(std::string_view("123456"));
  DOCTEST_CHECK(thrown([&] { core::read_text(source, 5); }).code == 65);
}

DOCTEST_TEST_CASE("the inputs of a command line: none is stdin, which can be read once") {
  using Paths = std::vector<std::string>;
  DOCTEST_CHECK(core::input_paths({}) == Paths{"-"});
  DOCTEST_CHECK(core::input_paths({"b", "-", "b"}) == Paths{"b", "-", "b"});
  DOCTEST_CHECK(thrown([] { core::input_paths({"-", "a", "-"}); }).code == 64);
}

DOCTEST_TEST_CASE("random access: exact ranges, past the end is an error") {
  const Folder folder;
  const std::string path = folder.path / "x";
  core::write_file(path, "0123456789");
  const core::RandomFile file(path);
  const std::string text = "0123456789";
  const core::RandomMemory memory(std::as_bytes(std::span(text.data(), text.size())));
  const std::array<const core::RandomSource*, 2> sources = {&file, &memory};
  for (const auto* source : sources) {
    DOCTEST_CHECK(source->size() == 10);
    std::array<std::byte, 4> out{};
    source->read_at(6, out);
    DOCTEST_CHECK(out[0] == std::byte{'6'});
    DOCTEST_CHECK(out[3] == std::byte{'9'});
    DOCTEST_CHECK(thrown([&] { source->read_at(7, out); }).code == 65);
    DOCTEST_CHECK(thrown([&] { source->read_at(UINT64_MAX - 1, out); }).code != 0);
    core::SequentialSource sequence(*source);
    DOCTEST_CHECK(core::read_text(sequence, 100) == text);
  }
}

DOCTEST_TEST_CASE("what is spooled can be read at random and leaves no file") {
  const Folder folder;
  ::setenv("TMPDIR", folder.path.c_str(), 1);
  const std::string text(700'000, 'x');
  core::MemorySource source(text, "a pipe");
  const auto spooled = [&] {
    core::UnnamedFile unnamed(source.name());
    unnamed.write_all_of(source);
    return unnamed.contents();
  };
  const auto file = spooled();
  DOCTEST_CHECK(folder.files() == 0);
  DOCTEST_CHECK(file->name() == "a pipe");
  core::SequentialSource sequence(*file);
  DOCTEST_CHECK(core::read_text(sequence) == text);
  ::setenv("TMPDIR", "/nowhere", 1);
  DOCTEST_CHECK(thrown([&] { spooled(); }).code == 73);
  ::unsetenv("TMPDIR");
}
