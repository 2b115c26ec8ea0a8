// Package kit makes what a virtual machine of a worker boots: the kernel of a distribution,
// unpacked, and an initramfs with its modules. It reads the files of
// an unpacked package, or those that are installed, which may be anybody's.
//
//	source, err := kit.Find(root.FS(), "")    // boot/vmlinuz-* and lib/modules/*
//	made, err := kit.Make(source)
//	dir, err := made.Write("/home/me/.local/share/workshop/vm")
//
// The same input makes the same bytes. A kit stands in a directory that is named by its
// hash, with a description of it ([report.Kit]). A machine's own files, the guest's init
// among them, are appended when it starts ([Initrd]).
//
// It reads hostile input.
package kit
