#include "runtime/collect/normalize.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "runtime/base/utf8.h"

namespace sbx::collect {
namespace {

struct Decomposition {
  char32_t code_point;
  char32_t first, second;  // second is 0 for a singleton
};
struct CombiningClass {
  char32_t first, last;
  std::uint8_t value;
};
#include "runtime/collect/unicode_tables.inc"

struct Mark {
  char32_t code_point;
  std::uint8_t combining_class;
};

std::uint8_t combining_class(char32_t code_point) {
  const auto* const range = std::lower_bound(
      std::begin(kCombiningClasses), std::end(kCombiningClasses), code_point,
      [](const CombiningClass& entry, char32_t value) { return entry.last < value; });
  const bool inside = range != std::end(kCombiningClasses) && range->first <= code_point;
  return inside ? range->value : std::uint8_t{0};
}

// Hangul syllables decompose by arithmetic (The Unicode Standard, 3.12).
bool decompose_hangul(char32_t code_point, std::vector<Mark>& out) {
  constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
  constexpr char32_t kVowelCount = 21, kTailCount = 28, kSyllableCount = 11172;
  if (code_point < kSyllables || code_point >= kSyllables + kSyllableCount) return false;
  const char32_t index = code_point - kSyllables;
  out.push_back({kLeads + index / (kVowelCount * kTailCount), 0});
  out.push_back({kVowels + index / kTailCount % kVowelCount, 0});
  if (index % kTailCount != 0) out.push_back({kTails + index % kTailCount, 0});
  return true;
}

// Recursion is as deep as the longest chain in the table, three.
void decompose(char32_t code_point, std::vector<Mark>& out) {
  if (decompose_hangul(code_point, out)) return;
  const auto* const entry = std::lower_bound(
      std::begin(kDecompositions), std::end(kDecompositions), code_point,
      [](const Decomposition& row, char32_t value) { return row.code_point < value; });
  if (entry == std::end(kDecompositions) || entry->code_point != code_point) {
    out.push_back({code_point, combining_class(code_point)});
    return;
  }
  decompose(entry->first, out);
  if (entry->second != 0) decompose(entry->second, out);
}

// Canonical ordering: each run of marks with a class other than 0 is sorted by class, stably.
void order_marks(std::vector<Mark>& marks) {
  const auto is_starter = [](const Mark& mark) { return mark.combining_class == 0; };
  for (auto run = marks.begin(); run != marks.end();) {
    run = std::find_if_not(run, marks.end(), is_starter);
    const auto end = std::find_if(run, marks.end(), is_starter);
    std::stable_sort(run, end, [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    run = end;
  }
}

void flush(std::vector<Mark>& marks, std::string& key) {
  order_marks(marks);
  for (const Mark& mark : marks) append_utf8(key, mark.code_point);
  marks.clear();
}

}  // namespace

std::string canonical_key(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  std::string key;
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < text.size();) {
    const DecodedChar next = decode_utf8(text, i);
    if (next.valid) {
      decompose(next.code_point, marks);
    } else {
      flush(marks, key);
      key.append(text, i, next.length);
    }
    i += next.length;
  }
  flush(marks, key);
  return key;
}

}  // namespace sbx::collect
