# What sterna.py shows, read from the memory of a live process or a core file.
#
# Which fields are where is read from the table sterna_debug_layout of libsterna (src/threads/observation/debug.cc).
"""User threads of Sterna in the memory of a process."""

import re

import gdb

STATES = {1: "ready", 2: "waiting"}   # threads::Activity; 0: it has ended, or not begun.


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
        if self.values.get("version") != 4:
            raise SternaError("this script knows another version of libsterna: use the one that "
                              "was installed with it")

    def __getattr__(self, name):
        return self.values[name]

    def slot_of(self, address):
        """(base, bytes, number, rank or None) of the slot that an address is in."""
        if 0 <= address - self.iso_base < self.class_count << self.class_area_shift:
            stack_class = (address - self.iso_base) >> self.class_area_shift
            area = self.iso_base + (stack_class << self.class_area_shift)
            size = self.stack_slot_bytes_min << stack_class
            number = (address - area) // size
            return area + number * size, size, number, None
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
        stack_class = (size // self.stack_slot_bytes_min).bit_length() - 1
        colour = number % self.colour_count
        if rank is None:   # Counted down: layout.h.
            colour = self.colour_count - 1 - (
                number + self.colour_step * stack_class) % self.colour_count
        return base + end - self.descriptor_bytes - colour * self.colour_bytes


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
        """Its kernel thread waits in a handler until a worker has it: src/threads/carriers/carrier.h."""
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
            pc, frame = self.field("thread_context_code"), self.field("thread_context_frame")
            entry = symbol("sterna_context_entry")
            # One that has never run is at its bottom frame; callers are looked up at pc - 1.
            pc += 1 if pc == entry else 0
            return {"rip": pc, "rsp": at, "rbp": frame}
        if "aarch64" in machine:
            names = ["x%d" % i for i in range(19, 31)]
            values = {name: word(at + 8 * i) for i, name in enumerate(names)}
            return {"pc": values["x30"], "sp": at + 160, **values}
        raise SternaError("sterna_memory.py does not know the registers of " + machine)


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
    """Of the process that gdb looks at. The unwinder looks at none of them meanwhile."""
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
    mark_running(layout, threads)
    threads.sort(key=lambda t: (t.rank is None, t.rank if t.rank is not None else t.id))
    return threads
