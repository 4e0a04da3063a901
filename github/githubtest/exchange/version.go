package exchange

// The versions of the API.
const (
	OldVersion = "2022-11-28" // of a request that names none, and of the descriptions
	NewVersion = "2026-03-10"
)

// Removed calls f for every field that the new version of the API has removed, where
// it was.
func Removed(v any, f func(o map[string]any, key string)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			Removed(x, f)
		}
	case map[string]any:
		for beside, key := range map[string]string{"assignees": "assignee", "diff_url": "merge_commit_sha", "resources": "rate", "has_wiki": "has_downloads"} {
			if _, ok := v[beside]; ok && (key != "merge_commit_sha" || v["head"] != nil) {
				f(v, key)
			}
		}
		for _, x := range v {
			Removed(x, f)
		}
	}
}
