package compose

import "github.com/llmdo/workshop/internal/hostpath"

// refusal says why a source is refused (B7), "" if it isn't. The source has its
// symlinks resolved.
func (f *Facts) refusal(source string) string {
	list := f.Refused
	if len(list) == 0 {
		list = hostpath.For(hostpath.Caller{}) // what can be said without the machine
	}
	return list.Why(source)
}
