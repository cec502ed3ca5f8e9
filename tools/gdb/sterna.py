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
# Which fields are where is read from the table sterna_debug_layout of libsterna (src/threads/debug.cc).
"""gdb commands for the user threads of Sterna."""

import re

import gdb
import gdb.unwinder

STATES = {1: "ready", 2: "waiting"}   # threads::Activity; 0: it has ended, or not begun.
NAMES_MAX = 3             # Of functions in the list.
LISTED_FRAMES_MAX = 40    # Looked at for these.


class SternaError(gdb.GdbError):
    pass


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def word(address, size=8):
    return int.from_bytes(read(address, size), "little")


def text(address, limit=4096):
    result = b""
    while len(result) < limit:
        piece = read(address + len(result), 1)
        if piece == b"\0":
            break
        result += piece
    return result.decode("utf-8", "replace")


def symbol(name):
    """Address of a variable, with debug information or without."""
    try:
        return int(gdb.parse_and_eval("(unsigned long)&" + name))
    except gdb.error:
        return None


class Layout:
    """The table of the runtime in this process; one per process that is looked at."""

    def __init__(self):
        table = symbol("sterna_debug_layout")
        if table is None:
            raise SternaError("there is no libsterna in this process, or it has not been loaded yet")
        self.values = {}
        try:
            while True:
                name = word(table)
                if name == 0:
                    break
                self.values[text(name, 64)] = word(table + 8)
                table += 16
        except gdb.MemoryError:
            raise SternaError("the memory of libsterna cannot be read")
        shift = symbol("sterna_debug_rank_slot_shift")
        self.values["rank_slot_shift"] = word(shift) if shift else 0
        if self.values.get("version") != 1:
            raise SternaError("this script knows another version of libsterna: use the one that "
                              "was installed with it")

    def __getattr__(self, name):
        return self.values[name]

    def slot_of(self, address):
        """(base, bytes, number, rank or None) of the slot that an address is in."""
        if 0 <= address - self.iso_base < self.class_count << self.class_area_shift:
            stack_class = (address - self.iso_base) >> self.class_area_shift
            area = self.iso_base + (stack_class << self.class_area_shift)
            shift = self.stack_slot_shift_min + stack_class
            number = (address - area) >> shift
            return area + (number << shift), 1 << shift, number, None
        rank_shift = word(self.rank_slot_shift, 4) if self.rank_slot_shift else 0
        if rank_shift != 0 and 0 <= address - self.rank_base < self.rank_area_bytes:
            number = (address - self.rank_base) >> rank_shift
            return self.rank_base + (number << rank_shift), 1 << rank_shift, number, number
        return None

    def rank_head(self, base, size, number):
        return base + size // 8 + self.rank_head_bytes + number % self.colour_count * self.colour_bytes

    def descriptor_of(self, address):
        slot = self.slot_of(address)
        if slot is None:
            return None
        base, size, number, rank = slot
        end = size if rank is None else size // 8 + self.rank_head_bytes
        return base + end - self.descriptor_bytes - number % self.colour_count * self.colour_bytes


def regions():
    """Mapped memory: (begin, end), of a live process or a core file."""
    found = set()
    for command, pattern in (("info proc mappings", r"^\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s"),
                             ("info files", r"0x([0-9a-f]+) - 0x([0-9a-f]+) is load")):
        try:
            listing = gdb.execute(command, to_string=True)
        except gdb.error:
            continue
        found |= {(int(a, 16), int(b, 16)) for a, b in re.findall(pattern, listing, re.M)}
    return sorted(found)


class Thread:
    def __init__(self, layout, address, rank=None):
        self.layout, self.address, self.rank = layout, address, rank
        self.bytes = read(address, layout.thread_bytes)
        self.id = self.field("thread_id")
        self.context = self.field("thread_context")
        self.worker = self.field("thread_worker")
        self.kernel_thread = None   # gdb's thread that runs it.
        begin = layout.thread_name
        name = self.bytes[begin:begin + layout.thread_name_bytes].split(b"\0")[0]
        self.name = name.decode("utf-8", "replace")

    def field(self, name, size=8):
        begin = self.layout.values[name]
        return int.from_bytes(self.bytes[begin:begin + size], "little")

    @property
    def label(self):
        return str(self.id) if self.rank is None else "r%d" % self.rank

    @property
    def is_there(self):
        """A descriptor of a thread that has not ended."""
        return (self.field("thread_team") != 0 and self.field("thread_activity", 1) in STATES and
                self.layout.descriptor_of(self.address) == self.address)

    @property
    def is_preempted(self):
        """Its kernel thread waits in a handler until a worker has it: src/threads/carrier.h."""
        values = self.layout.values
        return "thread_flags" in values and (
            self.field("thread_flags", 4) & values["flag_kernel_bound"]) != 0

    @property
    def worker_index(self):
        try:
            return word(self.worker + self.layout.worker_index, 4) if self.worker else None
        except gdb.MemoryError:
            return None

    @property
    def state(self):
        if self.kernel_thread is not None and not self.is_preempted:
            return "running"
        return STATES[self.field("thread_activity", 1)]

    def registers(self):
        """Those that a debugger needs to go on from where the thread left its processor: what
        switch_context (src/threads/context_*) has saved."""
        machine = gdb.selected_inferior().architecture().name()
        at = self.context
        if "x86-64" in machine:
            pc, frame = word(at), word(at + 8)
            entry = symbol("sterna_context_entry")
            # One that has never run is at its bottom frame; callers are looked up at pc - 1.
            pc += 1 if pc == entry else 0
            return {"rip": pc, "rsp": at + 16 + 128, "rbp": frame}
        if "aarch64" in machine:
            names = ["x%d" % i for i in range(19, 31)]
            values = {name: word(at + 8 * i) for i, name in enumerate(names)}
            return {"pc": values["x30"], "sp": at + 160, **values}
        raise SternaError("sterna.py does not know the registers of " + machine)


def interrupted_frame():
    """The newest frame of the selected kernel thread, or, if it is in a handler on a stack of its
    own, the frame that the signal has interrupted."""
    newest = frame = gdb.newest_frame()
    for _ in range(16):
        older = frame.older()
        if older is None:
            break
        if frame.type() == gdb.SIGTRAMP_FRAME:
            return older
        frame = older
    return newest


def mark_running(layout, threads):
    by_address = {thread.address: thread for thread in threads}
    selected, frame = gdb.selected_thread(), selected_frame()
    for kernel_thread in gdb.selected_inferior().threads():
        try:
            kernel_thread.switch()
            stack_pointer = int(interrupted_frame().read_register("sp"))
        except gdb.error:
            continue
        thread = by_address.get(layout.descriptor_of(stack_pointer))
        if thread is not None:
            thread.kernel_thread = kernel_thread
    if selected is not None and selected.is_valid():
        selected.switch()
    if frame is not None and frame.is_valid():
        frame.select()


def selected_frame():
    try:
        return gdb.selected_frame()
    except gdb.error:
        return None


def find_threads():
    layout = Layout()
    threads = []
    for begin, end in regions():
        at = begin
        while at < end:
            slot = layout.slot_of(at)
            if slot is None:
                break
            base, size, number, rank = slot
            descriptor = layout.descriptor_of(base)
            if begin <= descriptor and descriptor + layout.thread_bytes <= end:
                try:
                    thread = Thread(layout, descriptor, rank)
                    if thread.is_there:
                        threads.append(thread)
                except gdb.MemoryError:
                    pass
            at = base + size
    UNWINDER.look_at(None)
    mark_running(layout, threads)
    threads.sort(key=lambda t: (t.rank is None, t.rank if t.rank is not None else t.id))
    return threads


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


def place(thread):
    """The functions that it is in, without the runtime's own."""
    names = []
    for number, frame in enumerate(frames(thread)):
        if number == LISTED_FRAMES_MAX or len(names) == NAMES_MAX:
            break
        name = name_of(frame)
        if not name.startswith("sterna::") and name != "sterna_context_entry":
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
