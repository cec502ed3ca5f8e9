/* Programs and libraries that cannot be ranks, each by its options (CMakeLists.txt): what a macro
 * says is what it is. */
#if defined(IS_LIBRARY)
int half(void) { return 1; }
#if defined(IS_WHOLE)
int other(void) { return 2; }
#endif
int MPI_Init(void) { return 1; }
#elif defined(CALLS)
int CALLS(void);
int main(void) { return CALLS(); }
#elif defined(IS_LARGE)
__thread char large[100000];
int main(void) { return large[5]; }
#else
int main(void) { return 0; }
#endif
