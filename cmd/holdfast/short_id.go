package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

const (
	minShortID   = 6      // minimum number of characters of a shortened id
	uniqueSuffix = 12     // number of last characters that are random enough to be unique among any number of ids
	maxSearched  = 10_000 // maximum number of ids that are searched
)

// A namePager returns one page of names and the cursor of the next page, which is empty after the last. Ids come in descending order.
type namePager func(cursor string) (names []string, next string, err error)

// jobID parses the id of a job. The text may be the beginning or the end of an id, as the console shows it, if only one job has it.
func jobID(ctx context.Context, o ops.Operator, text string) (holdfast.ID, error) {
	return fullID("job", text, func(cursor string) (names []string, next string, err error) {
		jobs, next, err := o.Jobs(ctx, store.Filter{Limit: 200, Cursor: cursor})
		for _, job := range jobs {
			names = append(names, job.ID.String())
		}
		return names, next, err
	})
}

// groupID parses the id of a group like jobID.
func groupID(ctx context.Context, o ops.Operator, text string) (holdfast.ID, error) {
	return fullID("group", text, func(cursor string) (names []string, next string, err error) {
		groups, next, err := o.Groups(ctx, store.GroupFilter{Limit: 200, Cursor: cursor})
		for _, g := range groups {
			names = append(names, g.ID.String())
		}
		return names, next, err
	})
}

// redriveID parses the id of a redrive like jobID.
func redriveID(ctx context.Context, o ops.Operator, text string) (holdfast.ID, error) {
	return fullID("redrive", text, func(string) (names []string, next string, err error) {
		redrives, err := o.Redrives(ctx)
		for _, r := range redrives {
			names = append(names, r.ID.String())
		}
		if len(redrives) > 0 { // the error is about redrives that cannot be read; the others are listed
			err = nil
		}
		return names, "", err
	})
}

// subscriptionID parses the id of a subscription like jobID.
func subscriptionID(ctx context.Context, o ops.Operator, text string) (holdfast.ID, error) {
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

// fingerprint returns the fingerprint of an error group. The text may be its beginning, if only one group has it.
func fingerprint(ctx context.Context, o ops.Operator, text string) (string, error) {
	if len(text) >= minShortID {
		groups, _, err := o.ErrorGroups(ctx, store.ErrorFilter{Fingerprint: text, Limit: 1})
		if err != nil || len(groups) > 0 {
			return text, err
		}
		found, complete, err := searchNames(text, false, func(cursor string) (names []string, next string, err error) {
			groups, next, err := o.ErrorGroups(ctx, store.ErrorFilter{Limit: 200, Cursor: cursor})
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
		case len(found) == 1 && complete:
			return found[0], nil
		}
	}
	return text, nil // the caller's request reports that there is none
}

// checkID returns an error if a text is neither an id nor part of one. It needs no store.
func checkID(text string) error {
	_, err := holdfast.ParseID(text)
	if short := shortened(text); len(short) >= minShortID && len(short) < 36 && strings.Trim(short, "0123456789abcdef-") == "" {
		return nil
	}
	return err
}

// shortened normalizes a short id for comparison.
func shortened(text string) string { return strings.ToLower(strings.TrimPrefix(text, "…")) }

// withID is withOperator for a command whose first argument is an id. It refuses an invalid id before it opens a store.
func withID(c *cobra.Command, id string, do func(ctx context.Context, o ops.Operator) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	return withOperator(c, do)
}

// fullID returns the one id that begins or ends with a text. A match is accepted only if no other id can match: because all ids were searched, or all with
// this beginning were searched, or the end is long enough to be unique.
func fullID(what, text string, page namePager) (holdfast.ID, error) {
	id, err := holdfast.ParseID(text)
	if err == nil || checkID(text) != nil {
		return id, err
	}
	short := shortened(text)
	found, complete, searchErr := searchNames(short, true, page)
	switch {
	case searchErr != nil:
		return id, searchErr
	case len(found) > 1:
		return id, ambiguous(what, text, found)
	case len(found) == 1 && (complete || strings.HasPrefix(found[0], short) || len(short) >= uniqueSuffix):
		return holdfast.ParseID(found[0])
	case len(found) == 1:
		return id, &usageError{fmt.Errorf("%s %.40q: %[4]s matches among the newest %[3]d, but older ones were not searched: give at least the last %[5]d characters, or the whole id", what, text, maxSearched, found[0], uniqueSuffix)}
	case !complete:
		return id, &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("no id of a %s among the newest %d begins or ends with %.40q: give the whole id", what, maxSearched, text)}
	}
	return id, &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("no id of a %s begins or ends with %.40q", what, text)}
}

// searchNames collects the names that begin with a text; of ids also those that end with it. complete reports whether all names were searched. Ids come in
// descending order, so the search ends early when every id with the same beginning has been seen.
func searchNames(text string, ids bool, page namePager) (found []string, complete bool, err error) {
	searched, cursor := 0, ""
	for searched < maxSearched {
		names, next, err := page(cursor)
		if err != nil {
			return nil, false, err
		}
		for _, name := range names {
			if strings.HasPrefix(name, text) || ids && strings.HasSuffix(name, text) {
				found = append(found, name)
			}
		}
		searched += len(names)
		if next == "" {
			return found, true, nil
		}
		if last := len(names) - 1; ids && last >= 0 && names[last] < text && slices.ContainsFunc(found, func(name string) bool { return strings.HasPrefix(name, text) }) {
			return found, false, nil // every id with this beginning has been seen
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
