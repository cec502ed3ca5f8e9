/* A module that a program loads: its thread-local variable comes late. */
_Thread_local int module_count = 5;

int* module_local(void);

int* module_local(void) {
  return &module_count;
}
