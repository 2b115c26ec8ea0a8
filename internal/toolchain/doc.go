// Package toolchain finds where the programs of this machine are: those that
// `image: host` shows a worker, and those of version managers in the home directory
// or in /opt, with the read-only mount that would show them. It reads directories,
// links and the settings of version managers, and starts nothing.
//
// What a mount would show is one toolchain: never a home directory, a directory of
// programs of one's own such as ~/.local/bin, or what no worker gets (B7).
package toolchain
