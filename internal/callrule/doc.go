// Package callrule reads the rules of approvals, a tool and what its call must
// match, and decides which calls they are about. It is pure: the loader of
// workshop.yaml and the decision on a call read a rule the same way.
//
// A rule that grants is only about a call that is surely meant. One that asks or
// denies is about each call that it may mean: see [Rule.Grants] and
// [Rule.Restricts].
package callrule
