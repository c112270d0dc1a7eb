//! Proofs: tokens of a real time-stamping authority on this machine, and what `verify --proofs` makes of them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bellwether::archive::Archive;
use serde_json::Value;
use tempfile::TempDir;

use crate::documents;
use crate::support::program::{Outcome, Place};
use crate::support::tools::{Tool, needs};

const TSA: &str = "[tsa]\ndefault_tsa = it\n[it]\nserial = serial\nsigner_cert = tsa.pem\nsigner_key = tsa.key\n\
                   signer_digest = sha256\ndefault_policy = 1.2.3.4.1\ndigests = sha256\naccuracy = secs:1\nordering = yes\n\
                   tsa_name = yes\ness_cert_id_chain = no\ness_cert_id_alg = sha256\n\
                   [req]\ndistinguished_name = name\nprompt = no\n[name]\nCN = it\n\
                   [ca]\nbasicConstraints = critical,CA:TRUE\nkeyUsage = critical,keyCertSign\n\
                   [stamping]\nextendedKeyUsage = critical,timeStamping\nkeyUsage = critical,digitalSignature\n\
                   [mail]\nextendedKeyUsage = emailProtection\nkeyUsage = critical,digitalSignature\n";

/// An authority: `openssl ts` behind HTTP.
struct Authority {
    folder: TempDir,
    address: String,
    is_open: Arc<AtomicBool>,
}

impl Authority {
    /// With keys of a kind: `rsa:2048`, or `ec` of a curve.
    fn start(key: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("tsa.cnf"), TSA).expect("the authority works");
        fs::write(folder.path().join("serial"), "01\n").expect("the authority works");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/tsr", listener.local_addr().expect("the authority works"));
        let is_open = Arc::new(AtomicBool::new(true));
        let authority = Self { folder, address, is_open: Arc::clone(&is_open) };
        authority.make_root("ca", key);
        authority.issue("tsa", key, "stamping");
        let path = authority.folder.path().to_owned();
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.expect("a connection"), &path, is_open.load(Ordering::SeqCst));
            }
        });
        authority
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn openssl(&self, arguments: &str) -> Outcome {
        let mut command = Command::new("openssl");
        Outcome::of(command.args(arguments.split(' ')).current_dir(self.folder.path()))
    }

    /// A key, and a certificate of a root.
    fn make_root(&self, name: &str, key: &str) {
        let key = format!("-newkey {key} -nodes -keyout {name}.key");
        let request = "req -x509 -config tsa.cnf -extensions ca -days 30";
        self.openssl(&format!("{request} -subj /CN=root-{name} {key} -out {name}.pem")).expect_success();
    }

    /// A key, and a certificate of the root for a use.
    fn issue(&self, name: &str, key: &str, usage: &str) {
        let key = format!("-newkey {key} -nodes -keyout {name}.key");
        self.openssl(&format!("req -new -config tsa.cnf -subj /CN={name} {key} -out {name}.csr")).expect_success();
        let issue = "x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile tsa.cnf";
        self.openssl(&format!("{issue} -extensions {usage} -in {name}.csr -out {name}.pem")).expect_success();
    }

    fn open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::SeqCst);
    }

    /// A definition of the demo that it stamps.
    fn define(&self, place: &Place, more: &str) {
        let source = "source.service = \"demo\"\nsignals.sectors = \"utilities\"\ndataset.kind = \"signals\"\n";
        place.define("it", &format!("{source}proof.tsa = \"{}\"\n{more}", self.address));
    }
}

/// Answers a request as an authority does.
fn answer(mut stream: TcpStream, folder: &Path, is_open: bool) {
    let mut reader = BufReader::new(stream.try_clone().expect("the authority works"));
    let (mut line, mut length, mut is_query) = (String::new(), 0, false);
    while reader.read_line(&mut line).expect("the authority works") > 2 {
        let lower = line.to_ascii_lowercase();
        length = lower
            .strip_prefix("content-length: ")
            .map_or(length, |text| text.trim().parse().expect("the authority works"));
        is_query |= lower.trim() == "content-type: application/timestamp-query";
        line.clear();
    }
    let mut query = vec![0; length];
    reader.read_exact(&mut query).expect("the authority works");
    if !is_open || !is_query {
        stream
            .write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .expect("the authority works");
        return;
    }
    fs::write(folder.join("query"), query).expect("the authority works");
    let mut reply = Command::new("openssl");
    reply.args(["ts", "-reply", "-config", "tsa.cnf", "-section", "it", "-queryfile", "query", "-out", "reply"]);
    Outcome::of(reply.current_dir(folder)).expect_success();
    let reply = fs::read(folder.join("reply")).expect("the authority works");
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", reply.len());
    stream.write_all(&[head.as_bytes(), &reply].concat()).expect("the authority works");
}

/// The paths of the proofs, the oldest first.
fn proofs(place: &Place) -> Vec<PathBuf> {
    let is_proof = |path: &PathBuf| path.to_string_lossy().contains("/proof=");
    let mut found: Vec<PathBuf> = place
        .files()
        .into_iter()
        .filter(is_proof)
        .map(|path| place.file(path.to_str().expect("the authority works")))
        .collect();
    found.sort();
    found
}

fn read(proof: &Path) -> Value {
    serde_json::from_slice(&fs::read(proof).expect("the authority works")).expect("the authority works")
}

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&text[place..place + 2], 16).expect("the authority works"))
        .collect()
}

/// Replaces a text in a note, and seals it again as its writer would.
fn forge(note: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(note).expect("the authority works");
    assert!(text.contains(from), "{from}: {text}");
    let text = text.replace(from, to);
    let (before, after) = text.split_once("\"seal\": \"").expect("a seal");
    let unsealed = format!("{before}\"seal\": \"{}{}", "0".repeat(64), &after[64..]);
    let seal = blake3::hash(unsealed.as_bytes()).to_hex();
    fs::write(note, format!("{before}\"seal\": \"{seal}{}", &after[64..])).expect("the authority works");
}

fn check(place: &Place, authority: &Path, code: i32) -> Outcome {
    place.run(["verify", "--proofs", authority.to_str().expect("the authority works")]).failed_with(code)
}

#[test]
fn what_is_known_is_stamped_after_a_run_and_proven_without_the_authority() {
    needs!(Tool::Command("openssl"));
    let (place, authority) = (Place::new(), Authority::start("rsa:2048"));
    authority.define(&place, "proof.after_run = true\n");
    let run = place.run(["run", "it"]).expect_success().stdout;
    assert!(run.contains("note      stamped by 127.0.0.1:"), "{run}");
    let again = place.run(["stamp", "it"]).expect_success().stdout;
    assert!(again.starts_with("all that is known of demo was already stamped by 127.0.0.1:"), "{again}");
    let document = place.run(["stamp", "it", "--json"]).expect_success().stdout;
    documents::check(&place, "stamp", &document);
    assert!(document.contains(r#""is_new":false"#), "{document}");
    let [proof] = &proofs(&place)[..] else { panic!("one proof") };
    let note = read(proof);
    let (statement, token) = (note["statement"].as_str().unwrap(), bytes(note["token"].as_str().unwrap()));
    let run = crate::support::rows::sealed_run(&place);
    let seal: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    let name = run.file_name().unwrap().to_str().unwrap().trim_start_matches("run=");
    assert_eq!(statement, format!("bellwether archive demo\nrun {name} {}\n", seal["seal"].as_str().unwrap()));
    // Others can check it as well.
    fs::write(authority.file("statement"), statement).unwrap();
    fs::write(authority.file("token"), &token).unwrap();
    authority.openssl("ts -verify -data statement -in token -token_in -CAfile ca.pem").expect_success();

    authority.open(false);
    let proven = check(&place, &authority.file("ca.pem"), 0).stdout;
    assert!(proven.contains(": 1 run of demo known at 20") && proven.contains(", certified by 127.0.0.1:"), "{proven}");
    let version = fs::read_link(place.file("output/datasets/it/latest")).unwrap();
    assert!(proven.contains(&format!("it/{} is proven since 20", version.display())), "{proven}");
    // A run that no token stands for is not proven, and no run fails for want of one.
    let run = place.run(["run", "it"]).expect_success().stdout;
    assert!(
        run.contains("note      not stamped: no time-stamp from 127.0.0.1:")
            && run.contains(": it answered with status 503; "),
        "{run}"
    );
    place.run(["stamp", "it"]).failed_with(75);
    let proven = check(&place, &authority.file("ca.pem"), 0).stdout;
    assert!(proven.contains("is not proven: run `20"), "{proven}");
    // The next token stands for it.
    authority.open(true);
    place.run(["stamp", "it"]).expect_success();
    let json = place.run(["verify", "--json", "--proofs", authority.file("ca.pem").to_str().unwrap()]).expect_success();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let mut proofs = json["proven"]["proofs"].as_array().unwrap().clone();
    proofs.sort_by_key(|proof| proof["runs"].as_u64());
    assert_eq!((&proofs[0]["runs"], &proofs[1]["runs"]), (&1.into(), &2.into()));
    let since: Vec<&Value> =
        json["proven"]["versions"].as_array().unwrap().iter().map(|version| &version["since"]).collect();
    // Whoever else can write the definition does not choose an authority.
    fs::set_permissions(place.file("pipelines/it.toml"), fs::Permissions::from_mode(0o666)).unwrap();
    let refused = place.run(["stamp", "it"]).failed_with(2).stderr;
    assert!(refused.contains("is not trusted"), "{refused}");
    assert_eq!(since, [&proofs[0]["at"], &proofs[1]["at"]]);
}

#[test]
fn whatever_is_wrong_with_a_proof_is_found_and_what_cannot_be_checked_is_not_called_fine() {
    needs!(Tool::Command("openssl"));
    let (place, authority) = (Place::new(), Authority::start("ec -pkeyopt ec_paramgen_curve:prime256v1"));
    let ca = authority.file("ca.pem");
    // Valid when the token is made, so that its use alone is wrong.
    authority.issue("mail", "ec -pkeyopt ec_paramgen_curve:prime256v1", "mail");
    authority.define(&place, "");
    place.run(["stamp", "it"]).failed_with(1);
    place.run(["run", "it", "-q"]).expect_success();
    let none = check(&place, &ca, 5).stderr;
    assert!(none.starts_with("error: there are no proofs"), "{none}");
    place.run(["stamp", "it"]).expect_success();
    check(&place, &ca, 0);
    let proof = proofs(&place).remove(0);
    let (text, note) = (fs::read_to_string(&proof).unwrap(), read(&proof));
    let of = |name: &str| note[name].as_str().unwrap().to_owned();
    let (token, statement) = (of("token"), of("statement"));
    let run = statement.split(' ').nth(3).unwrap().to_owned();
    let seal = statement.trim_end().rsplit(' ').next().unwrap().to_owned();

    // A certificate that does not issue, one of somebody else, and a file that is none.
    authority.make_root("other", "ec -pkeyopt ec_paramgen_curve:prime256v1");
    let other = check(&place, &authority.file("other.pem"), 1).stdout;
    assert!(other.contains("is invalid: its certificate was not issued by a given authority"), "{other}");
    let refused = check(&place, &authority.file("tsa.cnf"), 2).stderr;
    assert!(refused.contains("is not the certificate of an authority: it has no certificate"), "{refused}");

    // The words of the authority, signed with a certificate for something else: `cms` makes the same kind of data.
    fs::write(authority.file("token"), bytes(&token)).unwrap();
    authority.openssl("cms -verify -noverify -inform DER -in token -out words").expect_success();
    let sign = "cms -sign -binary -nodetach -cades -md sha256 -econtent_type 1.2.840.113549.1.9.16.1.4 -outform DER";
    authority.openssl(&format!("{sign} -signer mail.pem -inkey mail.key -in words -out resigned")).expect_success();
    let hex = |name: &str| fs::read(authority.file(name)).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let resigned: String = hex("resigned");
    // The last byte is of the signature; the digest of the statement is among the words.
    let last = format!("{}{:02x}", &token[..token.len() - 2], bytes(&token).last().unwrap() ^ 1);
    fs::write(authority.file("statement"), &statement).unwrap();
    let imprint = Outcome::of(Command::new("sha256sum").arg(authority.file("statement"))).expect_success().stdout[..64]
        .to_owned();
    assert!(token.contains(&imprint));
    let other_words = token.replace(&imprint, &"ab".repeat(32));
    let cut = &token[..token.len() - 40];
    for (from, to, code, reason) in [
        (&token, resigned.as_str(), 1, "its certificate is not for time-stamping"),
        (&token, &last, 1, "its signature is wrong"),
        (&token, &other_words, 1, "it is about another text"),
        (&token, cut, 1, "it is not a time-stamp token"),
        (&token, "", 1, "it is not a time-stamp token"),
        (&of("nonce"), "0000000000000001", 1, "it has another nonce than the request"),
        (&seal, &"cd".repeat(32), 1, "it is about another text"),
    ] {
        fs::write(&proof, &text).unwrap();
        forge(&proof, from, to);
        let found = check(&place, &ca, code);
        assert!(found.stdout.contains(reason), "{reason}: {found:?}");
        assert!(found.stdout.contains("is not proven: run `20"), "{found:?}");
    }
    // A note that its own digest does not fit is damaged, also for a plain `verify`.
    fs::write(&proof, text.replace(&of("nonce"), "0000000000000001")).unwrap();
    let damaged = place.run(["verify"]).failed_with(1).stdout;
    assert!(damaged.contains("BLAKE3"), "{damaged}");
    fs::write(&proof, &text).unwrap();
    // History that was written anew after it was stamped: the run has the same name and another seal.
    let record = place.file(&format!("output/archive/demo/run={run}/run.json"));
    let kept = fs::read_to_string(&record).unwrap();
    forge(&record, "\"bellwether\": \"", "\"bellwether\": \"9");
    let found = check(&place, &ca, 1).stdout;
    assert!(found.contains(&format!("the archive has another run `{run}` than it is about")), "{found}");
    fs::write(&record, kept).unwrap();
    // A run that is gone: it may have been there.
    fs::rename(place.file(&format!("output/archive/demo/run={run}")), place.file("gone")).unwrap();
    let unknown = place.run(["verify", "--json", "--proofs", ca.to_str().unwrap()]);
    let unknown: Value = serde_json::from_str(&unknown.stdout).unwrap();
    assert_eq!(unknown["proven"]["proofs"][0]["outcome"], "unknown");
    fs::rename(place.file("gone"), place.file(&format!("output/archive/demo/run={run}"))).unwrap();
    check(&place, &ca, 0);
}

#[test]
fn one_token_stands_for_forgotten_and_packed_runs_and_is_known_to_other_machines() {
    needs!(Tool::Command("openssl"));
    let (place, authority) = (Place::new(), Authority::start("ec -pkeyopt ec_paramgen_curve:secp384r1"));
    authority.define(&place, "");
    place.run(["run", "it", "-q"]).expect_success();
    place.run(["run", "it", "-q"]).expect_success();
    let archive = Archive::open(&place.file("output/archive/demo")).unwrap();
    let bad = archive.runs().last().unwrap().name().to_owned();
    place.run(["archive", "forget", &bad, "--reason", "a test"]).expect_success();
    place.run(["run", "it", "-q"]).expect_success();
    place.run(["stamp", "it"]).expect_success();
    let heads = read(&proofs(&place)[0])["statement"].as_str().unwrap().lines().count() - 1;
    assert_eq!(heads, 2, "the forgotten run, and the one that did not know it");
    let ca = authority.file("ca.pem");
    let proven = |place: &Place, runs: &str| {
        let printed = check(place, &ca, 0).stdout;
        assert!(printed.contains(&format!(": {runs} of demo known at 20")), "{printed}");
        printed
    };
    proven(&place, "3 runs");
    let store = format!("--store=file://{}", place.file("store").display());
    place.run(["store", "push", &store]).expect_success();
    place.run(["store", "verify", &store]).expect_success();
    let other = Place::new();
    authority.define(&other, "");
    other.run(["store", "pull", &store]).expect_success();
    assert_eq!(read(&proofs(&other)[0]), read(&proofs(&place)[0]));
    // It gets the run that is forgotten, too: the token is about it.
    proven(&other, "3 runs");
    // What is damaged of a proof on either side is mended from the other.
    let local = proofs(&other)[0].clone();
    let name = local.parent().unwrap().file_name().unwrap();
    let remote = place.file("store/archive/demo").join(name).join("run.json");
    for damaged in [&local, &remote] {
        let text = fs::read(damaged).unwrap();
        fs::remove_file(damaged).unwrap();
        fs::write(damaged, &text[..text.len() / 2]).unwrap();
        other.run(["store", "repair", &store]).expect_success();
        assert_eq!(fs::read(damaged).unwrap(), text, "{}", damaged.display());
        proven(&other, "3 runs");
    }
    place.run(["archive", "compact", "--keep", "0"]).expect_success();
    place.run(["archive", "prune"]).expect_success();
    proven(&place, "3 runs");
}
