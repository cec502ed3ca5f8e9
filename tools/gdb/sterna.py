# The user threads of Sterna in gdb: live processes and core files, with or without debug information.
#
#   (gdb) source PREFIX/share/sterna/gdb/sterna.py
#   (gdb) sterna threads            all of them: state, worker, where they are
#   (gdb) sterna thread 7           look at thread 7 (a rank: r7): bt, up, info locals then mean it
#   (gdb) sterna thread             back to what gdb itself says
#   (gdb) sterna bt 7 | all         back-traces
#
# A parked thread is a stack pointer. An unwinder makes its frames the callers of the frame that the
# selected kernel thread is in: no register is written, so a live process may go on at any time, and
# core files work the same. Frame 0 stays that of the kernel thread.
#
# sterna_memory.py, beside this file, finds the threads.
"""gdb commands for the user threads of Sterna."""

import os
import sys

import gdb
import gdb.unwinder

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sterna_memory as memory  # noqa: E402
from sterna_memory import SternaError, selected_frame, symbol, text, word  # noqa: E402

NAMES_MAX = 3             # Of functions in the list.
LISTED_FRAMES_MAX = 40    # Looked at for these.


def find_threads():
    UNWINDER.look_at(None)
    return memory.find_threads()


def find_thread(words):
    """By number, r<rank>, or name."""
    wanted = words.strip()
    threads = find_threads()
    exact = [t for t in threads if t.label == wanted] or [t for t in threads if t.name == wanted]
    if not exact:
        raise SternaError("there is no thread '%s'; sterna threads lists them" % wanted)
    return exact[0]


class Symbols:
    """The programs of ranks were loaded by Sterna, at another address for each rank: gdb is told."""

    def __init__(self):
        self.known = set()

    def add(self, thread):
        objects = symbol("sterna_debug_objects")
        if thread.rank is None or objects is None:
            return
        layout = thread.layout
        base, size, number, _ = layout.slot_of(thread.address)
        images = word(layout.rank_head(base, size, number) + layout.slot_images)
        for index in range(min(word(objects), 256)):
            entry = word(objects + 8) + 16 * index
            path, offset = text(word(entry)), word(entry + 8)
            key = (gdb.selected_inferior().num, path, images + offset)
            if key in self.known:
                continue
            self.known.add(key)
            try:
                gdb.execute("with confirm off -- add-symbol-file '%s' -o %#x" %
                            (path.replace("'", "\\'"), images + offset), to_string=True)
            except gdb.error as error:
                gdb.write("no symbols of %s: %s\n" % (path, error), gdb.STDERR)


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Unwinder(gdb.unwinder.Unwinder):
    """Makes the frames of the thread that is looked at the callers of frame 0."""

    def __init__(self):
        super().__init__("sterna")
        self.thread = None
        self.top = None   # (ptid, stack pointer, pc) of frame 0.

    def look_at(self, thread):
        self.thread = None
        gdb.invalidate_cached_frames()
        if thread is not None:
            frame = gdb.newest_frame()
            self.top = (gdb.selected_thread().ptid, int(frame.read_register("sp")), frame.pc())
            self.registers = thread.registers()
            self.thread = thread
            gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if self.thread is None or gdb.selected_thread() is None:
            return None
        try:
            here = (gdb.selected_thread().ptid, int(pending.read_register("sp")),
                    int(pending.read_register("pc")))
        except gdb.error:
            return None
        if here != self.top:
            return None
        # gdb takes a caller whose frame lies below for a broken stack: so frame 0 is put lowest.
        info = pending.create_unwind_info(FrameId(gdb.Value(16), gdb.Value(here[2])))
        kind = gdb.lookup_type("unsigned long")
        for name, value in self.registers.items():
            info.add_saved_register(name, gdb.Value(value).cast(kind))
        return info


UNWINDER = Unwinder()
SYMBOLS = Symbols()


def frames(thread):
    """Of a thread, the innermost first. The selected frame changes."""
    SYMBOLS.add(thread)
    if thread.kernel_thread is not None:
        UNWINDER.look_at(None)
        thread.kernel_thread.switch()
        frame = gdb.newest_frame()
    else:
        UNWINDER.look_at(thread)
        frame = gdb.newest_frame().older()
    while frame is not None:
        yield frame
        try:
            frame = frame.older()
        except gdb.error:
            break


def name_of(frame):
    return frame.name() or "%#x" % frame.pc()


def is_of_runtime(frame, name):
    """Not the functions of C that a program calls: those say what it waits for."""
    if name.startswith("sterna::") or name == "sterna_context_entry":
        return True
    library = (gdb.solib_name(frame.pc()) or "").rpartition("/")[2]
    return name.startswith("(anonymous namespace)::") and library.startswith(("libsterna", "libmpi_abi"))


def place(thread):
    """The functions that it is in, without the runtime's own."""
    names = []
    for number, frame in enumerate(frames(thread)):
        if number == LISTED_FRAMES_MAX or len(names) == NAMES_MAX:
            break
        name = name_of(frame)
        if not is_of_runtime(frame, name):
            names.append(name)
    return " < ".join(names) or "(not started, or no symbols)"


def describe(frame, number):
    line = "#%-3d %#018x in %s" % (number, frame.pc(), name_of(frame))
    where = frame.find_sal()
    if where is not None and where.symtab is not None:
        return line + " at %s:%d" % (where.symtab.filename, where.line)
    shared = gdb.solib_name(frame.pc())
    return line + (" from " + shared if shared else "")


def preserving(function):
    """gdb's own thread and frame stay selected."""
    def call(self, argument, from_tty):
        selected, looked_at, frame = gdb.selected_thread(), UNWINDER.thread, selected_frame()
        level = frame.level() if frame is not None else 0
        try:
            function(self, argument, from_tty)
        finally:
            UNWINDER.look_at(None)
            if selected is not None and selected.is_valid():
                selected.switch()
                UNWINDER.look_at(looked_at)
                gdb.execute("frame %d" % level, to_string=True)
    return call


class Prefix(gdb.Command):
    """The user threads of Sterna: sterna threads, sterna thread, sterna bt."""

    def __init__(self):
        super().__init__("sterna", gdb.COMMAND_STACK, gdb.COMPLETE_COMMAND, prefix=True)


class Threads(gdb.Command):
    """Lists all user threads: number, name, state, worker, functions they are in.
With the word 'fast', without the functions."""

    def __init__(self):
        super().__init__("sterna threads", gdb.COMMAND_STACK)

    @preserving
    def invoke(self, argument, from_tty):
        threads = find_threads()
        gdb.write("  %-6s %-20s %-18s %-7s %s\n" % ("thread", "name", "state", "worker", "where"))
        for thread in threads:
            worker = thread.worker_index
            gdb.write("  %-6s %-20s %-18s %-7s %s\n" %
                      (thread.label, thread.name or "-", thread.state,
                       "-" if worker is None else worker,
                       "" if argument == "fast" else place(thread)))
        gdb.write("%d threads\n" % len(threads))


class SwitchTo(gdb.Command):
    """Looks at a user thread, by its number, r<rank> or name: frame 1 and on are its own.
Without argument: back to what the kernel thread does. Nothing of the process is changed."""

    def __init__(self):
        super().__init__("sterna thread", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if not argument.strip():
            UNWINDER.look_at(None)
            gdb.execute("frame 0")
            return
        thread = find_thread(argument)
        SYMBOLS.add(thread)
        if thread.kernel_thread is not None:
            thread.kernel_thread.switch()
            gdb.write("thread %s runs on kernel thread %d\n" % (thread.label, thread.kernel_thread.num))
            gdb.execute("frame 0")
            return
        UNWINDER.look_at(thread)
        gdb.write("thread %s %s: %s; frame 0 is the kernel thread's\n" %
                  (thread.label, thread.name, thread.state))
        gdb.execute("frame 1")


class BackTrace(gdb.Command):
    """Back-trace of a user thread (number, r<rank>, name) or of 'all'."""

    def __init__(self):
        super().__init__("sterna bt", gdb.COMMAND_STACK)

    @preserving
    def invoke(self, argument, from_tty):
        if not argument.strip():
            raise SternaError("which thread? sterna bt NUMBER, or sterna bt all")
        threads = find_threads() if argument.strip() == "all" else [find_thread(argument)]
        for thread in threads:
            gdb.write("thread %s %s: %s\n" % (thread.label, thread.name, thread.state))
            for number, frame in enumerate(frames(thread)):
                gdb.write(describe(frame, number) + "\n")


# Another program: nothing of the last one is true any more.
gdb.events.exited.connect(lambda event: (SYMBOLS.known.clear(), setattr(UNWINDER, "thread", None)))
gdb.events.cont.connect(lambda event: setattr(UNWINDER, "thread", None))
gdb.unwinder.register_unwinder(None, UNWINDER, replace=True)
for command in (Prefix, Threads, SwitchTo, BackTrace):
    command()
