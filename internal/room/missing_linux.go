package room

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// extensionsOf lists the extensions of a rule.
func extensionsOf(f firewall.Family, exprs []expr.Any) (out []kernelsupport.Extension) {
	for _, x := range exprs {
		switch y := x.(type) {
		case *expr.Match:
			out = append(out, kernelsupport.Extension{Family: nfproto(f), Name: y.Name, Revision: y.Rev, Target: false})
		case *expr.Target:
			out = append(out, kernelsupport.Extension{Family: nfproto(f), Name: y.Name, Revision: y.Rev, Target: true})
		}
	}
	return out
}

// lacking returns an error with all modules that the kernel lacks for a transaction
// refused with err; nil if that isn't the cause. at is the refused message, 0 for none.
func (t *transaction) lacking(err error, at int) error {
	var missing []string
	add := func(module string) {
		if !slices.Contains(missing, module) {
			missing = append(missing, module)
		}
	}
	switch {
	case at == 0 && (errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT)):
		// without nfnetlink extensions can't be asked for
		return lacks("nfnetlink", "nf_tables", "nft_compat")
	case at == 1 && errors.Is(err, unix.EOPNOTSUPP):
		add("nf_tables") // no such subsystem (nfnetlink_rcv_batch)
	case at > 1 && errors.Is(err, unix.ENOENT) && strings.HasPrefix(t.what[at-1], "chain "):
		add("nft_chain_nat") // the only type of chain that has a module
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
	default:
		return nil
	}
	more, err := kernelsupport.Missing(t.extensions)
	if err != nil && len(missing) == 0 {
		return nil
	}
	for _, module := range more {
		add(module)
	}
	if len(missing) == 0 {
		return nil
	}
	return lacks(missing...)
}

// lackError is the kernel modules missing for a room with netfilter.
type lackError struct{ modules []string }

func lacks(modules ...string) error { return &lackError{modules} }

// Error names the modules, and what to do.
func (e *lackError) Error() string {
	list := strings.Join(e.modules, ", ")
	if n := len(e.modules); n > 1 {
		list = strings.Join(e.modules[:n-1], ", ") + " and " + e.modules[n-1]
	}
	return fmt.Sprintf("the kernel lacks %s, without which a room can't be closed: load it on the machine that runs the containers (sudo modprobe -a %s), or use a kernel that has it; a worker with `network: none` needs no room", list, strings.Join(e.modules, " "))
}
