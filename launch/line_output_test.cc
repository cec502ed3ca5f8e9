// Lines of several writers: when they go out, who cuts whom, and what becomes of a lost reader.
// Time is driven; what was written is read back from files.
#include "launch/line_output.h"

#include <array>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

namespace sterna::launch {
namespace {

constexpr std::uint64_t kBegin = 1'000'000'000;
constexpr std::size_t kLong = LineOutput::kHeldBytesMax + 1000;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

FileDescriptor memory_file() {
  return FileDescriptor{::memfd_create("output", MFD_CLOEXEC)};
}

std::string text_in(const FileDescriptor& file) {
  std::string text(std::size_t{4} << 20, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

struct Printed {
  explicit Printed(bool tags = false, bool is_one_file = false)
      : output{opened.value(),
               {.tag_lines = tags, .fds = {out.get(), is_one_file ? out.get() : error.get()}}} {}
  void say(std::uint32_t rank, std::string_view text, OutputStream to = OutputStream::output) {
    output.add(rank, to, bytes_of(text));
    turn();
  }
  void turn() {
    while (!output.is_drained()) {
      opened.value().run_once(0);
    }
    output.step(now_ns);
  }
  /// As the loop: the time passes until something is due, or all of it.
  void wait(std::uint64_t ns) {
    for (const std::uint64_t end_ns = now_ns + ns; now_ns < end_ns;) {
      now_ns = std::max(now_ns, std::min(end_ns, output.deadline_ns()));
      turn();
    }
    turn();
  }
  std::string text() const { return text_in(out); }
  std::string end() {
    output.finish();
    turn();
    return text();
  }

  std::uint64_t now_ns = kBegin;
  FileDescriptor out = memory_file();
  FileDescriptor error = memory_file();
  Result<Loop> opened = Loop::open();
  LineOutput output;
};

TEST(LineOutput, LinesOfSeveralWritersStayWhole) {
  Printed printed;
  printed.say(0, "a");
  printed.say(1, "x\ny");
  printed.say(0, "b\nc");
  EXPECT_EQ(printed.text(), "x\nab\n");
  printed.say(1, "z\n");
  printed.say(0, "\n");
  EXPECT_EQ(printed.end(), "x\nab\nyz\nc\n");
}

TEST(LineOutput, ALongLineIsPassedOnAsItIsWhileNobodyElseWrites) {
  Printed printed;
  const std::string part(5000, 'x');
  std::string all;
  while (all.size() < 3 * kLong) {
    printed.say(0, part);
    all += part;
  }
  EXPECT_GT(printed.text().size(), kLong) << "not only at its end";
  EXPECT_EQ(printed.end(), all);
}

TEST(LineOutput, ALongLineIsCutByALineOfSomebodyElse) {
  Printed printed{true};
  const std::string part(kLong, 'x');
  printed.say(0, part);
  printed.say(1, "half");
  EXPECT_EQ(printed.text(), "[0] " + part) << "half a line is not worth it";
  printed.say(1, " a line\n");
  printed.say(0, "rest\nnext\n");
  EXPECT_EQ(printed.end(), "[0] " + part + "\n[1] half a line\n[0] rest\n[0] next\n");
}

TEST(LineOutput, TheEndOfALineThatWasCutIsNotWrittenTwice) {
  Printed printed;
  const std::string part(kLong, 'x');
  printed.say(0, part);
  printed.say(1, "line\n");
  printed.say(0, "\nnext\n");
  printed.say(0, "\n");
  EXPECT_EQ(printed.end(), part + "\nline\nnext\n\n");
}

TEST(LineOutput, WhatIsBegunIsShownWhenNobodyHasWrittenForAMoment) {
  Printed printed;
  printed.say(0, "Name? ");
  printed.wait(LineOutput::kQuietNs * 9 / 10);
  EXPECT_EQ(printed.text(), "");
  printed.say(1, "begun");
  printed.wait(LineOutput::kQuietNs * 9 / 10);
  EXPECT_EQ(printed.text(), "") << "somebody has written";
  printed.wait(LineOutput::kQuietNs * 10);
  EXPECT_EQ(printed.text(), "Name? ") << "and no other's would be in that line";
  printed.say(0, "Hello");
  EXPECT_EQ(printed.text(), "Name? Hello");
  printed.say(0, "\n");
  printed.wait(LineOutput::kQuietNs);
  EXPECT_EQ(printed.text(), "Name? Hello\nbegun");
  EXPECT_EQ(printed.output.deadline_ns(), kNever) << "nothing is left to show";
  EXPECT_EQ(printed.end(), "Name? Hello\nbegun");
}

TEST(LineOutput, TheLastLineGetsAnEndOnlyWhereItIsNotTheOnlyOne) {
  for (const bool tags : {false, true}) {
    Printed alone{tags};
    alone.say(1, "line\n");
    alone.say(0, "no end");
    EXPECT_EQ(alone.end(), tags ? "[1] line\n[0] no end\n" : "line\nno end");
  }
  for (const std::uint64_t wait_ns : {std::uint64_t{0}, LineOutput::kQuietNs}) {
    Printed two;
    two.say(0, "half");
    two.wait(wait_ns);
    two.say(1, "half");
    EXPECT_EQ(two.end(), "half\nhalf\n");
  }
}

TEST(LineOutput, StreamsThatAreOneFileDoNotWriteIntoEachOthersLines) {
  Printed printed{false, true};
  printed.say(0, "Name? ");
  printed.wait(LineOutput::kQuietNs);
  printed.say(1, "oops\n", OutputStream::error);
  printed.say(0, "Hello\n");
  printed.say(0, "Name? ");
  printed.wait(LineOutput::kQuietNs);
  printed.output.add_message("sterna run: over");
  EXPECT_EQ(printed.end(), "Name? \noops\nHello\nName? \nsterna run: over\n");
}

TEST(LineOutput, AMessageOfOursDoesNotEndTheLineOfAnotherFile) {
  Printed printed;
  printed.say(0, "Name? ");
  printed.wait(LineOutput::kQuietNs);
  printed.output.add_message("sterna run: over");
  EXPECT_EQ(printed.end(), "Name? ");
  EXPECT_EQ(text_in(printed.error), "sterna run: over\n");
}

struct LostReader {
  LostReader() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ::close(ends[0]);
    writer = FileDescriptor{ends[1]};
    output.emplace(opened.value(), LineOutput::Options{.fds = {writer.get(), error.get()}});
    say("the first that nobody reads\n");
    EXPECT_EQ(text_in(error), "");
  }
  void say(std::string_view text) {
    output->add(0, OutputStream::output, bytes_of(text));
    while (!output->is_drained()) {
      opened.value().run_once(0);
    }
    output->step(now_ns);
  }
  std::uint64_t now_ns = kBegin;
  FileDescriptor writer;
  FileDescriptor error = memory_file();
  Result<Loop> opened = Loop::open();
  std::optional<LineOutput> output;
};

TEST(LineOutput, WhoPrintsOnLongAfterTheReaderHasLeftIsUnread) {
  LostReader job;
  job.say("soon\n");
  job.now_ns += LineOutput::kUnreadNs - 1;
  job.say("still\n");
  EXPECT_FALSE(job.output->is_unread());
  job.now_ns += LineOutput::kUnreadNs;
  job.output->step(job.now_ns);
  EXPECT_FALSE(job.output->is_unread()) << "it has printed nothing since";
  job.output->add_message("of ours");
  job.output->step(job.now_ns);
  EXPECT_FALSE(job.output->is_unread());
  job.say("and on\n");
  EXPECT_TRUE(job.output->is_unread());
  EXPECT_EQ(job.output->error_number(), 0);
}

TEST(LineOutput, WhoPrintsMuchAfterTheReaderHasLeftIsUnreadAtOnce) {
  LostReader job;
  const std::string much(std::size_t{1} << 20, 'x');
  for (std::uint64_t bytes = 0; bytes < LineOutput::kUnreadBytes; bytes += much.size()) {
    EXPECT_FALSE(job.output->is_unread());
    job.say(much);
  }
  job.say("more");
  EXPECT_TRUE(job.output->is_unread());
}

}  // namespace
}  // namespace sterna::launch
