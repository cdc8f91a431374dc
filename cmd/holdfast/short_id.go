package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

const (
	leastShort  = 6      // characters of a shortened id
	certainTail = 12     // characters at the end of an id that are random enough to name one of any number
	mostLooked  = 10_000 // ids that are looked at for a shortened one
)

// A page lists names, the greatest first where they are ids, and the cursor of the next page; empty: there is none.
type pageOf func(cursor string) (names []string, next string, err error)

// jobID reads the id of a job. It may be shortened to its beginning or its end, as the console shows it, where only one job has it.
func jobID(ctx context.Context, o ops.Desk, text string) (holdfast.ID, error) {
	return fullID("job", text, func(cursor string) (names []string, next string, err error) {
		jobs, next, err := o.Jobs(ctx, holdfast.Filter{Limit: 200, Cursor: cursor})
		for _, job := range jobs {
			names = append(names, job.ID.String())
		}
		return names, next, err
	})
}

// groupID reads the id of a group, as jobID does.
func groupID(ctx context.Context, o ops.Desk, text string) (holdfast.ID, error) {
	return fullID("group", text, func(cursor string) (names []string, next string, err error) {
		groups, next, err := o.Groups(ctx, holdfast.GroupFilter{Limit: 200, Cursor: cursor})
		for _, g := range groups {
			names = append(names, g.ID.String())
		}
		return names, next, err
	})
}

// redriveID reads the id of a redrive, as jobID does.
func redriveID(ctx context.Context, o ops.Desk, text string) (holdfast.ID, error) {
	return fullID("redrive", text, func(string) (names []string, next string, err error) {
		redrives, err := o.Redrives(ctx)
		for _, r := range redrives {
			names = append(names, r.ID.String())
		}
		if len(redrives) > 0 { // those that can be read are listed beside the error
			err = nil
		}
		return names, "", err
	})
}

// subscriptionID reads the id of a subscription, as jobID does.
func subscriptionID(ctx context.Context, o ops.Desk, text string) (holdfast.ID, error) {
	return fullID("subscription", text, func(string) (names []string, next string, err error) {
		all, err := o.Subscriptions(ctx)
		for _, s := range all {
			names = append(names, s.ID.String())
		}
		if len(all) > 0 {
			err = nil
		}
		return names, "", err
	})
}

// fingerprint reads the fingerprint of an error group, which may be shortened to its beginning where only one group has it.
func fingerprint(ctx context.Context, o ops.Desk, text string) (string, error) {
	if len(text) >= leastShort {
		groups, _, err := o.ErrorGroups(ctx, holdfast.ErrorFilter{Fingerprint: text, Limit: 1})
		if err != nil || len(groups) > 0 {
			return text, err
		}
		found, whole, err := lookFor(text, false, func(cursor string) (names []string, next string, err error) {
			groups, next, err := o.ErrorGroups(ctx, holdfast.ErrorFilter{Limit: 200, Cursor: cursor})
			for _, g := range groups {
				names = append(names, g.Fingerprint)
			}
			return names, next, err
		})
		switch {
		case err != nil:
			return "", err
		case len(found) > 1:
			return "", ambiguous("error group", text, found)
		case len(found) == 1 && whole:
			return found[0], nil
		}
	}
	return text, nil // the answer says that there is none
}

// anID refuses a text that is no id, and no part of one. It needs no store.
func anID(text string) error {
	_, err := holdfast.ParseID(text)
	if short := shortened(text); len(short) >= leastShort && len(short) < 36 && strings.Trim(short, "0123456789abcdef-") == "" {
		return nil
	}
	return err
}

// shortened is a short id as it is compared.
func shortened(text string) string { return strings.ToLower(strings.TrimPrefix(text, "…")) }

// withID is withDesk for a verb whose first argument is an id: what cannot be one is refused before a store is opened.
func withID(c *cobra.Command, id string, do func(ctx context.Context, o ops.Desk) error) error {
	if err := anID(id); err != nil {
		return err
	}
	return withDesk(c, do)
}

// fullID finds the one id that begins or ends with a text.
func fullID(what, text string, page pageOf) (holdfast.ID, error) {
	id, err := holdfast.ParseID(text)
	if err == nil || anID(text) != nil {
		return id, err
	}
	short := shortened(text)
	found, whole, failed := lookFor(short, true, page)
	switch {
	case failed != nil:
		return id, failed
	case len(found) > 1:
		return id, ambiguous(what, text, found)
	case len(found) == 1 && (whole || strings.HasPrefix(found[0], short) || len(short) >= certainTail):
		return holdfast.ParseID(found[0])
	case len(found) == 1:
		return id, &usageError{fmt.Errorf("%s %.40q: among the newest %d there is %s, and there are older ones: give at least %d characters of the end, or the whole id", what, text, mostLooked, found[0], certainTail)}
	case !whole:
		return id, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("no %s among the newest %d has an id that begins or ends with %.40q: give the whole id", what, mostLooked, text)}
	}
	return id, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("no %s has an id that begins or ends with %.40q", what, text)}
}

// lookFor collects the names that begin, or of ids also end, with a text. It reports whether it has looked at all of them that may; ids come in descending order.
func lookFor(text string, ids bool, page pageOf) (found []string, whole bool, err error) {
	looked, cursor := 0, ""
	for looked < mostLooked {
		names, next, err := page(cursor)
		if err != nil {
			return nil, false, err
		}
		for _, name := range names {
			if strings.HasPrefix(name, text) || ids && strings.HasSuffix(name, text) {
				found = append(found, name)
			}
		}
		looked += len(names)
		if next == "" {
			return found, true, nil
		}
		if last := len(names) - 1; ids && last >= 0 && names[last] < text && slices.ContainsFunc(found, func(name string) bool { return strings.HasPrefix(name, text) }) {
			return found, false, nil // all that begin so have been seen
		}
		cursor = next
	}
	return found, false, nil
}

func ambiguous(what, text string, found []string) error {
	more := ""
	if len(found) > 5 {
		found, more = found[:5], ", ..."
	}
	return &usageError{fmt.Errorf("%s %.40q is ambiguous: %s%s", what, text, strings.Join(found, ", "), more)}
}
