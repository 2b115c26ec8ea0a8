// Package landlock puts a fence around the file system for the calling thread
// and what it executes (landlock(7)), with the best that the kernel has.
package landlock
