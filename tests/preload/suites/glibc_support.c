/* The one name of glibc's build that the support library of its tests links to: a part of what it prints for
 * gdb. */
extern const char support_objdir_root[];
const char support_objdir_root[] = "";
