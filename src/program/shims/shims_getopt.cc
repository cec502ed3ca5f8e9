// getopt and getopt_long on the rank's own variables: libc's keep where they are in variables of
// the process, which several ranks would share. Behaves and words its messages as glibc does.
#include <cstdlib>
#include <cstring>
#include <utility>

#include <getopt.h>

#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

char* find_environment(RankData& data, const char* name) noexcept {
  for (char** entry = variable<char**>(data, Variable::environment);
       entry != nullptr && *entry != nullptr; ++entry) {
    const std::size_t bytes = std::strlen(name);
    if (std::strncmp(*entry, name, bytes) == 0 && (*entry)[bytes] == '=') {
      return *entry + bytes + 1;
    }
  }
  return nullptr;
}

/// One call of a getopt function.
class Getopt {
 public:
  Getopt(RankData& data, int count, char* const* arguments, const char* options,
         const option* long_options)
      : data_{data},
        state_{data.getopt},
        index_{variable<int>(data, Variable::option_index)},
        argument_{variable<char*>(data, Variable::option_argument)},
        unknown_{variable<int>(data, Variable::option_unknown)},
        count_{count},
        arguments_{const_cast<char**>(arguments)},
        options_{options},
        long_options_{long_options} {}

  int run(int* long_index, bool is_long_only) {
    argument_ = nullptr;
    start();
    if (state_.next_character == nullptr || *state_.next_character == '\0') {
      if (!next_argument()) {
        return -1;
      }
      char* word = arguments_[index_];
      if (is_operand_) {
        ++index_;
        argument_ = word;
        return 1;
      }
      if (long_options_ != nullptr && word[1] == '-') {
        return take_long(word + 2, "--", long_index);
      }
      if (long_options_ != nullptr && is_long_only &&
          (word[2] != '\0' || std::strchr(options_, word[1]) == nullptr)) {
        if (find_long(word + 1).first != nullptr || word[1] == '-' ||
            std::strchr(options_, word[1]) == nullptr) {
          return take_long(word + 1, "-", long_index);
        }
      }
      state_.next_character = word + 1;
    }
    return take_short(long_index);
  }

 private:
  void start() {
    if (index_ == 0 || !state_.is_started) {
      if (index_ == 0) {
        index_ = 1;
      }
      state_ = {};
      state_.is_started = true;
      state_.first_operand = state_.last_operand = index_;
      if (options_[0] == '-') {
        state_.order = GetoptState::Order::in_order;
      } else if (options_[0] == '+' || find_environment(data_, "POSIXLY_CORRECT") != nullptr) {
        state_.order = GetoptState::Order::require;
      }
    }
    if (options_[0] == '-' || options_[0] == '+') {
      ++options_;
    }
    is_silent_ = options_[0] == ':' || variable<int>(data_, Variable::option_error) == 0;
  }

  static bool is_option(const char* word) { return word[0] == '-' && word[1] != '\0'; }

  /// Moves the operands stepped over behind the options since: [first, last) and [last, index).
  void exchange() {
    int middle = state_.last_operand;
    const int begin = state_.first_operand;
    for (int from = middle; from < index_; ++from, ++middle) {
      char* moved = arguments_[from];
      const int distance = state_.last_operand - state_.first_operand;
      std::memmove(&arguments_[from - distance + 1], &arguments_[from - distance],
                   static_cast<std::size_t>(distance) * sizeof(char*));
      arguments_[from - distance] = moved;
    }
    state_.first_operand = begin + (index_ - state_.last_operand);
    state_.last_operand = index_;
  }

  /// False: no more options; optind is then the first operand.
  bool next_argument() {
    state_.last_operand = std::min(state_.last_operand, index_);
    state_.first_operand = std::min(state_.first_operand, index_);
    if (state_.order == GetoptState::Order::permute) {
      if (state_.first_operand != state_.last_operand && state_.last_operand != index_) {
        exchange();
      } else if (state_.last_operand != index_) {
        state_.first_operand = index_;
      }
      while (index_ < count_ && !is_option(arguments_[index_])) {
        ++index_;
      }
      state_.last_operand = index_;
    }
    if (index_ < count_ && std::strcmp(arguments_[index_], "--") == 0) {
      ++index_;
      if (state_.first_operand != state_.last_operand && state_.last_operand != index_) {
        exchange();
      } else if (state_.first_operand == state_.last_operand) {
        state_.first_operand = index_;
      }
      state_.last_operand = count_;
      index_ = count_;
    }
    if (index_ >= count_) {
      if (state_.first_operand != state_.last_operand) {
        index_ = state_.first_operand;
      }
      return false;
    }
    is_operand_ = !is_option(arguments_[index_]);
    return !is_operand_ || state_.order == GetoptState::Order::in_order;
  }

  template <typename... Args>
  void complain(const char* format, Args... arguments) {
    if (!is_silent_) {
      std::fprintf(variable<std::FILE*>(data_, Variable::standard_error), format, arguments_[0],
                   arguments...);
    }
  }

  /// The option, and whether the name is the beginning of several different ones.
  std::pair<const option*, bool> find_long(const char* name) const {
    const std::size_t bytes = std::strcspn(name, "=");
    const option* found = nullptr;
    bool is_ambiguous = false;
    for (const option* item = long_options_; item->name != nullptr; ++item) {
      if (std::strncmp(item->name, name, bytes) != 0) {
        continue;
      }
      if (std::strlen(item->name) == bytes) {
        return {item, false};
      }
      if (found != nullptr && (found->has_arg != item->has_arg || found->flag != item->flag ||
                               found->val != item->val)) {
        is_ambiguous = true;
      }
      found = found != nullptr ? found : item;
    }
    return {found, is_ambiguous};
  }

  int take_long(char* name, const char* prefix, int* long_index) {
    state_.next_character = nullptr;
    ++index_;
    const auto [found, is_ambiguous] = find_long(name);
    if (found == nullptr || is_ambiguous) {
      complain(
          is_ambiguous ? "%s: option '%s%s' is ambiguous\n" : "%s: unrecognized option '%s%s'\n",
          prefix, name);
      unknown_ = 0;
      return '?';
    }
    char* equals = std::strchr(name, '=');
    if (equals != nullptr && found->has_arg == no_argument) {
      complain("%s: option '%s%s' doesn't allow an argument\n", prefix, found->name);
      unknown_ = found->val;
      return '?';
    }
    if (equals != nullptr) {
      argument_ = equals + 1;
    } else if (found->has_arg == required_argument) {
      if (index_ >= count_) {
        complain("%s: option '%s%s' requires an argument\n", prefix, found->name);
        unknown_ = found->val;
        return options_[0] == ':' ? ':' : '?';
      }
      argument_ = arguments_[index_++];
    }
    if (long_index != nullptr) {
      *long_index = static_cast<int>(found - long_options_);
    }
    if (found->flag != nullptr) {
      *found->flag = found->val;
      return 0;
    }
    return found->val;
  }

  int take_short(int* long_index) {
    const char character = *state_.next_character++;
    const char* known =
        character == ':' || character == ';' ? nullptr : std::strchr(options_, character);
    if (*state_.next_character == '\0') {
      ++index_;
    }
    if (known == nullptr) {
      complain("%s: invalid option -- '%c'\n", character);
      unknown_ = character;
      return '?';
    }
    if (known[0] == 'W' && known[1] == ';' && long_options_ != nullptr) {
      char* name = *state_.next_character != '\0' ? state_.next_character : nullptr;
      if (name == nullptr && index_ < count_) {
        name = arguments_[index_];
      }
      if (name != nullptr) {
        return take_long(name, "-W ", long_index);
      }
    }
    if (known[1] != ':') {
      return character;
    }
    if (*state_.next_character != '\0') {
      argument_ = state_.next_character;
      ++index_;
    } else if (known[2] != ':') {
      if (index_ >= count_) {
        complain("%s: option requires an argument -- '%c'\n", character);
        unknown_ = character;
        state_.next_character = nullptr;
        return options_[0] == ':' ? ':' : '?';
      }
      argument_ = arguments_[index_++];
    }
    state_.next_character = nullptr;
    return character;
  }

  RankData& data_;
  GetoptState& state_;
  int& index_;       // optind
  char*& argument_;  // optarg
  int& unknown_;     // optopt
  const int count_;
  char** const arguments_;
  const char* options_;
  const option* const long_options_;
  bool is_silent_ = false;
  bool is_operand_ = false;
};

int shim_getopt(int count, char* const* arguments, const char* options) {
  return Getopt{calling_data(), count, arguments, options, nullptr}.run(nullptr, false);
}

int shim_getopt_long(int count, char* const* arguments, const char* options,
                     const option* long_options, int* long_index) {
  return Getopt{calling_data(), count, arguments, options, long_options}.run(long_index, false);
}

int shim_getopt_long_only(int count, char* const* arguments, const char* options,
                          const option* long_options, int* long_index) {
  return Getopt{calling_data(), count, arguments, options, long_options}.run(long_index, true);
}

}  // namespace

std::span<const Shim> getopt_shims() {
  static const Shim shims[] = {
      variable_shim("optarg", offsetof(RankData, variables.option_argument)),
      variable_shim("optind", offsetof(RankData, variables.option_index)),
      variable_shim("opterr", offsetof(RankData, variables.option_error)),
      variable_shim("optopt", offsetof(RankData, variables.option_unknown)),
      function_shim("getopt", shim_getopt),
      function_shim("__posix_getopt", shim_getopt),
      function_shim("getopt_long", shim_getopt_long),
      function_shim("getopt_long_only", shim_getopt_long_only),
  };
  return shims;
}

}  // namespace sterna::program
