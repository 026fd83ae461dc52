#pragma once
// Pickles, zip archives and both forms of torch.save, written byte by byte, for tests of the
// readers.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace torch_bytes {

inline std::string number(std::uint64_t n, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(n >> (8 * i));
  return out;
}

// Each pushes one value.
inline std::string unicode(const std::string& s) { return "X" + number(s.size(), 4) + s; }
inline std::string whole(std::int32_t n) { return "J" + number(static_cast<std::uint32_t>(n), 4); }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const auto& item : items) out += item;
  return out + "t";
}
inline std::string list(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const auto& item : items) out += item;
  return out + "e";
}
using Pairs = std::vector<std::pair<std::string, std::string>>;
inline std::string set_items(const Pairs& pairs) {
  std::string out = "(";
  for (const auto& [key, value] : pairs) out += key + value;
  return out + "u";
}
inline std::string dict(const Pairs& pairs) { return "}" + set_items(pairs); }
inline std::string ordered_dict(const Pairs& pairs) {
  return global("collections", "OrderedDict") + ")R" + set_items(pairs);
}
inline std::string whole_tuple(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> items;
  for (const auto n : numbers)
    items.push_back("\x8a\x08" + number(static_cast<std::uint64_t>(n), 8));
  return tuple(items);
}
/// Returns a tensor of `elements` of storage `key`; `view` follows the storage's own facts.
inline std::string tensor(const std::string& type, const std::string& key, std::int64_t elements,
    std::int64_t offset, const std::vector<std::int64_t>& shape,
    const std::vector<std::int64_t>& strides, const std::string& view = "") {
  const std::string id = tuple({unicode("storage"), global("torch", type), unicode(key),
      unicode("cpu"), whole(static_cast<std::int32_t>(elements)), view});
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({id + "Q", whole(static_cast<std::int32_t>(offset)), whole_tuple(shape),
             whole_tuple(strides), "\x89", ordered_dict({})}) +
         "R";
}
inline std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }

template <class T> std::string bytes_of(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

using Files = std::vector<std::pair<std::string, std::string>>;

/// Returns a zip archive of stored files. With `wide`, every size and offset is in its 64-bit
/// field.
inline std::string zip(const Files& files, bool wide = false) {
  std::string out, directory;
  for (const auto& [name, content] : files) {
    const auto at = out.size();
    const std::string head = number(20, 2) + number(0, 2) + number(0, 2) + number(0, 4);
    const std::string small = number(0, 4) + number(content.size(), 4) + number(content.size(), 4);
    out += "PK\x03\x04" + head + small + number(name.size(), 2) + number(3, 2) + name + "pad" +
           content;
    const std::string extra = wide ? number(1, 2) + number(24, 2) + number(content.size(), 8) +
                                         number(content.size(), 8) + number(at, 8)
                                   : "";
    const std::string far = number(0xffffffff, 4);
    directory += "PK\x01\x02" + number(20, 2) + head + (wide ? number(0, 4) + far + far : small) +
                 number(name.size(), 2) + number(extra.size(), 2) + number(0, 2) + number(0, 2) +
                 number(0, 2) + number(0, 4) + (wide ? far : number(at, 4)) + name + extra;
  }
  const auto begin = out.size(), end = begin + directory.size();
  out += directory;
  if (wide)
    out += "PK\x06\x06" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 4) +
           number(0, 4) + number(files.size(), 8) + number(files.size(), 8) +
           number(directory.size(), 8) + number(begin, 8) + "PK\x06\x07" + number(0, 4) +
           number(end, 8) + number(1, 4);
  return out + "PK\x05\x06" + number(0, 4) + number(wide ? 0xffff : files.size(), 2) +
         number(wide ? 0xffff : files.size(), 2) + number(wide ? 0xffffffff : directory.size(), 4) +
         number(wide ? 0xffffffff : begin, 4) + number(0, 2);
}

/// Returns torch.save's archive: `value` refers to the storages, KEY and bytes.
inline std::string archive(const std::string& value, const Files& storages, bool wide = false) {
  Files files = {{"ckpt/data.pkl", pickle(value)}, {"ckpt/byteorder", "little"}};
  for (const auto& [key, content] : storages) files.emplace_back("ckpt/data/" + key, content);
  files.emplace_back("ckpt/version", "3\n");
  return zip(files, wide);
}

struct StreamStorage {
  std::string key;
  std::uint64_t elements;
  std::string bytes;
};

/// Returns torch.save's stream.
inline std::string stream(const std::string& value, const std::vector<StreamStorage>& storages) {
  std::string out = pickle("\x8a\x0a" + std::string("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")) +
                    pickle("M" + number(1001, 2)) +
                    pickle(dict({{unicode("little_endian"), "\x88"}})) + pickle(value);
  std::vector<std::string> keys;
  for (const auto& storage : storages) keys.push_back(unicode(storage.key));
  out += pickle(list(keys));
  for (const auto& storage : storages) out += number(storage.elements, 8) + storage.bytes;
  return out;
}

}  // namespace torch_bytes
