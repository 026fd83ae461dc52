// Records of TensorBoard's files: checksums, and a record written out byte by byte.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>

#include "train/log.h"

DOCTEST_TEST_CASE("the checksum is Castagnoli's, rotated and offset") {
  const auto plain = [](std::string_view bytes) {
    return std::rotl(train::masked_crc32c(bytes) - 0xA282EAD8U, 15);
  };
  DOCTEST_CHECK(plain("123456789") == 0xE3069283U);            // the usual check value
  DOCTEST_CHECK(plain(std::string(32, '\0')) == 0x8A9136AAU);  // RFC 3720, B.4
  DOCTEST_CHECK(plain("") == 0);
}

DOCTEST_TEST_CASE("a line becomes a record: its numbers under their names") {
  const auto record = train::scalars_record({{"step", 300}, {"loss", .5}, {"note", "x"}}, 1.0);
  const std::string value = std::string("\x0A\x04loss\x15", 7) + std::string("\0\0\0\x3F", 4);
  const std::string summary = std::string("\x0A\x0B", 2) + value;
  const std::string event =
      std::string("\x09\0\0\0\0\0\0\xF0\x3F\x10\xAC\x02\x2A\x0D", 14) + summary;
  DOCTEST_REQUIRE(record.size() == 8 + 4 + event.size() + 4);
  DOCTEST_CHECK(record.substr(0, 8) ==
                std::string(1, static_cast<char>(event.size())) + std::string(7, '\0'));
  DOCTEST_CHECK(record.substr(12, event.size()) == event);
  const auto sum_at = [&](std::size_t at) {
    std::uint32_t sum = 0;
    for (int i = 3; i >= 0; --i)
      sum = sum << 8 | static_cast<unsigned char>(record[at + static_cast<std::size_t>(i)]);
    return sum;
  };
  DOCTEST_CHECK(sum_at(8) == train::masked_crc32c(std::string_view(record).substr(0, 8)));
  DOCTEST_CHECK(sum_at(12 + event.size()) == train::masked_crc32c(event));
}
