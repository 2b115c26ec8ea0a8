// Workshop-vm makes and runs virtual machines for workers. It is a second program, which
// nothing in rooms and guards links: it reads kernels of distributions and starts QEMU.
package main

import (
	"os"

	"github.com/llmdo/workshop/internal/vm"
)

func main() { os.Exit(vm.Main(os.Args[1:], os.Stdout, os.Stderr)) }
