use super::*;

/// A folder that is gone when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &[u8])]) -> Self {
        let dir = std::env::temp_dir().join(format!("steersman-cases-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&dir));
        for (file, bytes) in files {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Self(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn lines<'a>(verdicts: &'a [Verdict], file: &str) -> &'a [String] {
    let v = verdicts.iter().find(|v| v.file == file).unwrap();
    assert_eq!(v.faults, [] as [String; 0], "{file}");
    &v.findings
}

#[test]
fn each_folder_is_read_for_what_it_is() {
    let folder = Folder::with(
        "each",
        &[
            ("INDEX.md", b"| file | what | right |\n|---|---|---|\n| watch/one.ndjson | a b | stored; done |\n"),
            ("http/refused.http", b"HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"),
            (
                "watch/one.ndjson",
                b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"12\"}}}\n",
            ),
            ("json/odd/table.json", br#"{"kind":"Table","rows":[]}"#),
            ("json/status/410-x.json", br#"{"kind":"Status","code":410,"reason":"Expired","message":"old"}"#),
            (
                "kubeconfig/1.yaml",
                b"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n\
                  clusters: [{name: c, cluster: {server: 'https://a:1'}}]\n",
            ),
            ("kubeconfig/1.yaml.kubectl.txt", b"client for current context: client built OK \n"),
        ],
    );
    let verdicts = try_all(&folder.0).unwrap();
    let has = |file: &str, text: &str| {
        let lines = lines(&verdicts, file);
        assert!(lines.iter().any(|l| l.contains(text)), "no {text:?} in {lines:#?}");
    };
    has("http/refused.http", "wire: Retry-After 7s");
    has("http/refused.http", "wire: connection reusable");
    has("http/refused.http", "list: list failed (1)");
    has("watch/one.ndjson", "store [b@12, default/a@5 u1]");
    has("json/odd/table.json", "list: not a list but a Table");
    has("json/status/410-x.json", "[expired]");
    has("kubeconfig/1.yaml", "current: OK https://a:1");
    has("kubeconfig/1.yaml", "kubectl: client built OK");
    assert_eq!(verdicts[1].expected, "stored; done (a b)");
    assert!(report(&verdicts).ends_with("5 files, 0 with faults\n"));
}

#[test]
fn a_verdict_that_hangs_on_the_cut_is_a_fault() {
    let mut found = Findings::default();
    same_for_all_cuts("it", b"abc", &mut found, |parts| vec![format!("{}", parts[0].len() == 2)]);
    assert_eq!(found.faults.len(), 1, "{found:?}");
    let mut found = Findings::default();
    same_for_all_cuts("it", b"abc", &mut found, |parts| vec![format!("{}", parts.concat().len())]);
    assert_eq!(found.faults.len(), 0, "{found:?}");
}

#[test]
fn a_folder_without_cases_is_an_error() {
    let folder = Folder::with("none", &[("readme", b"")]);
    assert!(try_all(&folder.0).unwrap_err().contains("has none of"));
}
