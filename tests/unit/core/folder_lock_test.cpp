// A folder has one writer at a time.

#include "core/temporary_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "unit/temporary_folder.h"
#include "unit/thrown.h"

DOCTEST_TEST_CASE("a folder has one writer, until its lock goes") {
  const TemporaryFolder folder;
  const auto path = folder.path.string();
  {
    const core::FolderLock lock(path);
    const auto second = thrown([&] { const core::FolderLock another(path); });
    DOCTEST_CHECK(second.code == 73);
    DOCTEST_CHECK(second.text == path + ": another program is changing it");
    DOCTEST_CHECK(thrown([&] { const core::FolderLock another(path, "it is in use"); }).text ==
                  path + ": it is in use");
  }
  DOCTEST_CHECK(thrown([&] { const core::FolderLock another(path); }).code == 0);
}

DOCTEST_TEST_CASE("what is no folder cannot be locked") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  for (const char* name : {"nowhere", "file"})
    DOCTEST_CHECK(thrown([&] { const core::FolderLock lock(folder / name); }).code == 66);
}

DOCTEST_TEST_CASE("a folder that the lock made goes with it where it stayed empty") {
  const TemporaryFolder folder;
  const auto path = folder / "below";
  using Absent = core::FolderLock::Absent;
  {
    const core::FolderLock lock(path, "held", Absent::made);
    DOCTEST_CHECK(std::filesystem::is_directory(path));
    DOCTEST_CHECK(thrown([&] { const core::FolderLock second(path, "held", Absent::made); }).text ==
                  path + ": held");
  }
  DOCTEST_CHECK(!std::filesystem::exists(path));
  {
    const core::FolderLock lock(path, "held", Absent::made);
    std::ofstream(path + "/file") << "text";
  }
  DOCTEST_CHECK(std::filesystem::exists(path + "/file"));
  DOCTEST_CHECK(thrown([&] {
    const core::FolderLock lock(path + "/file", "held", Absent::made);
  }).code == 73);
}
