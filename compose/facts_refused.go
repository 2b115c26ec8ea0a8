package compose

import "github.com/llmdo/workshop/internal/hostpath"

// Refusal returns why a source is refused (B7), in words that follow its path
// ("lies inside /etc"), and "" if it isn't. The source is absolute, with its
// symbolic links resolved. Without a list in the facts it is the one of every
// machine.
func (f *Facts) Refusal(source string) string {
	list := make(hostpath.List, len(f.Refused))
	for i, r := range f.Refused {
		list[i] = hostpath.Refused(r)
	}
	if len(list) == 0 {
		list = hostpath.For(hostpath.Caller{})
	}
	return list.Why(source)
}
