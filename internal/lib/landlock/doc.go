// Package landlock restricts file system access of the calling thread and the programs
// it executes (landlock(7)), as far as the kernel supports it.
package landlock
