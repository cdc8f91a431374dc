package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/schedule"
)

// scheduleWords describes when a schedule is due. For an expression without a short description it returns "By the cron expression".
func scheduleWords(s schedule.Schedule) string {
	if s.Cron == "" {
		return title(s.Describe())
	}
	fields := strings.Fields(cronPlain(s.Cron))
	if len(fields) != 5 {
		return "By the cron expression"
	}
	at, exact, ok := cronTimes(fields[0], fields[1])
	days, known := cronDays(fields[2], fields[3], fields[4])
	switch {
	case !ok || !known:
		return "By the cron expression"
	case exact && days == "":
		return "Every day at " + at
	case exact:
		return title(days) + " at " + at
	case days == "":
		return title(at)
	}
	return title(at) + ", " + days
}

// cronPlain expands named expressions, such as @daily, to five fields.
func cronPlain(text string) string {
	named := map[string]string{"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *"}
	if plain := named[strings.ToLower(text)]; plain != "" {
		return plain
	}
	return strings.ReplaceAll(text, "?", "*")
}

// cronTimes describes the times of day. exact reports whether they are at most six times.
func cronTimes(minute, hour string) (text string, exact, ok bool) {
	minutes, few := cronList(minute, 0, 59)
	hours, rare := cronList(hour, 0, 23)
	switch {
	case few && rare && len(minutes)*len(hours) <= 6:
		var times []string
		for _, h := range hours {
			for _, m := range minutes {
				times = append(times, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return andWords(times), true, true
	case few && len(minutes) == 1:
		text, ok = cronEvery(hour, "hour")
		if ok && minutes[0] != 0 {
			text += fmt.Sprintf(", %d min past", minutes[0])
		}
		if !ok {
			text, ok = cronHours(hour)
			text = "every hour " + text
		}
		return text, false, ok
	}
	if text, ok = cronEvery(minute, "minute"); !ok || hour == "*" {
		return text, false, ok
	}
	within, ok := cronHours(hour)
	return text + " " + within, false, ok
}

// cronHours describes a range of hours.
func cronHours(hour string) (string, bool) {
	if hours, few := cronList(hour, 0, 23); few && len(hours) == 1 {
		return fmt.Sprintf("from %02d:00 to %02d:59", hours[0], hours[0]), true
	}
	first, last, ok := strings.Cut(hour, "-")
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if !ok || err != nil || err2 != nil || from < 0 || to > 23 || from > to {
		return "", false
	}
	return fmt.Sprintf("from %02d:00 to %02d:59", from, to), true
}

// cronEvery describes a field that is * or a step.
func cronEvery(field, unit string) (string, bool) {
	if field == "*" || field == "*/1" {
		return "every " + unit, true
	}
	step, ok := strings.CutPrefix(field, "*/")
	n, err := strconv.Atoi(step)
	if !ok || err != nil || n < 2 || n > 59 {
		return "", false
	}
	whole := map[string]int{"minute": 60, "hour": 24}[unit]
	if whole%n != 0 { // uneven steps restart with every hour or day: they have no short description
		return "", false
	}
	return fmt.Sprintf("every %d %ss", n, unit), true
}

// cronList parses a list of numbers.
func cronList(field string, least, most int) (numbers []int, ok bool) {
	for text := range strings.SplitSeq(field, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}

// cronDays describes the days. It returns "" for every day.
func cronDays(dom, month, dow string) (text string, ok bool) {
	var days []string
	if dom != "*" {
		words, known := cronMonthDays(dom)
		if !known {
			return "", false
		}
		if month == "*" {
			words += " of every month"
		}
		days = append(days, words)
	}
	if dow != "*" {
		words, known := cronWeekdays(dow)
		if !known {
			return "", false
		}
		days = append(days, words)
	}
	text = strings.Join(days, " or ") // as in crontab, a day matches if either field matches
	if month != "*" {
		words, known := cronMonths(month)
		if !known {
			return "", false
		}
		if text == "" {
			text = "every day"
		}
		text += " in " + words
	}
	return text, true
}

func cronMonthDays(field string) (string, bool) {
	if strings.EqualFold(field, "L") {
		return "on the last day", true
	}
	if day, ok := strings.CutSuffix(strings.ToUpper(field), "W"); ok {
		n, err := strconv.Atoi(day)
		return "on the weekday nearest to the " + nth(n), err == nil
	}
	numbers, ok := cronList(field, 1, 31)
	var names []string
	for _, n := range numbers {
		names = append(names, nth(n))
	}
	return "on the " + andWords(names), ok
}

// cronWeekdays describes days of the week: 1-5, MON,THU, FRI#3.
func cronWeekdays(field string) (string, bool) {
	if first, last, ok := strings.Cut(field, "-"); ok {
		from, known := weekdayOf(first)
		to, known2 := weekdayOf(last)
		return from + " to " + to, known && known2
	}
	var names []string
	before := "every "
	for text := range strings.SplitSeq(field, ",") {
		day, which, picked := strings.Cut(text, "#")
		name, known := weekdayOf(day)
		if !known {
			return "", false
		}
		if picked {
			order, known := map[string]string{"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth", "L": "last"}[strings.ToUpper(which)]
			if !known {
				return "", false
			}
			name, before = "the "+order+" "+name+" of the month", "on "
		}
		names = append(names, name)
	}
	return before + andWords(names), true
}

func weekdayOf(text string) (string, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if text == strconv.Itoa(int(day)) || strings.EqualFold(text, day.String()[:3]) {
			return day.String(), true
		}
	}
	return "Sunday", text == "7"
}

func cronMonths(field string) (string, bool) {
	var names []string
	for text := range strings.SplitSeq(field, ",") {
		found := ""
		for month := time.January; month <= time.December; month++ {
			if text == strconv.Itoa(int(month)) || strings.EqualFold(text, month.String()[:3]) {
				found = month.String()
			}
		}
		if found == "" {
			return "", false
		}
		names = append(names, found)
	}
	return andWords(names), true
}

// nth returns an ordinal number: 1st, 2nd, 3rd, 11th.
func nth(n int) string {
	end := "th"
	if tens := n % 100; tens < 11 || tens > 13 {
		end = map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	}
	if end == "" {
		end = "th"
	}
	return strconv.Itoa(n) + end
}

// andWords joins words with commas and "and".
func andWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
