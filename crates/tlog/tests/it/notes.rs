//! Signed notes, cosignatures, policies and proof files.

use crate::log::{ORIGIN, Tree, leaves, signed, signer};
use gpuledger_tlog::bundle::{ProofFile, ProofFileError};
use gpuledger_tlog::checkpoint::{Checkpoint, CheckpointError};
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{Kind, Note, NoteError, Signer, Verifier, compose};
use gpuledger_tlog::policy::Policy;

const AT_S: u64 = 1_767_225_600;

fn witness(name: &str, seed: u8) -> Signer {
    Signer::from_seed(name, Kind::Cosigner, &[seed; 32]).expect("a seed of 32 bytes")
}

fn head() -> Checkpoint {
    Checkpoint { origin: ORIGIN.to_owned(), size: 1, root: Hash::of_leaf(b"a") }
}

/// The lines were made by another implementation (`aics-tlog` 0.2.1) with the same keys: the time is big-endian, before the signature.
#[test]
fn signatures_are_those_of_another_implementation() {
    let text = head().text();
    let log = "\u{2014} log.example/test +uIDU0UEBSesfBdF4pd0QqTpko1h94QWC1tQzJ/x74Q/+5NP/GDgKTFwn2bTqBmnLJXk1ujkmdzb9cljobo+uliymws=\n";
    assert_eq!(signer(1).sign(&text, AT_S), log);
    let cosigned = "\u{2014} witness.example/w 0KWQvgAAAABpVbkABB1cS9zIZekD42Mrx9+PH/VNMHX5fsxKOcc8owkyIPWlI7c968EzhDvgaMoHRZKPUBW7FF5OjmFjIlvWSW2SBg==\n";
    let witness = witness("witness.example/w", 9);
    assert_eq!(witness.sign(&text, AT_S), cosigned);
    assert_eq!(
        witness.verifier().to_string(),
        "witness.example/w+d0a590be+BP0XJDhaoMdbZPt4zWAvodmR/ev3axPFjtcC6sg16fYY"
    );
    assert_eq!(
        signer(1).verifier().to_string(),
        "log.example/test+fae20353+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"
    );
}

#[test]
fn a_key_reads_as_it_was_written_and_no_other_way() {
    let key = signer(1).verifier().clone();
    let text = key.to_string();
    assert_eq!(Verifier::parse(&text), Ok(key));
    for wrong in [
        "",
        "log",
        "log+00000000",
        &text[1..],
        &text.replace("fae20353", "fae20354"),
        &text.replace("+AY", "+AZ"),
        &format!("{text}="),
    ] {
        assert!(Verifier::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_bad_signature_of_a_known_key_refuses_the_note_and_an_unknown_key_does_not() {
    let text = head().text();
    let (log, other) = (signer(1), signer(2));
    let note = compose(&text, &[other.sign(&text, 0), log.sign(&text, 0)]).expect("a text");
    assert!(Checkpoint::open(note.as_bytes(), log.verifier(), &[]).is_ok());
    // The log's own signature, but of another text.
    let moved = log.sign("another text\n", 0);
    let note = compose(&text, &[moved, other.sign(&text, 0)]).expect("a text");
    let refused = Checkpoint::open(note.as_bytes(), log.verifier(), &[]);
    assert_eq!(refused, Err(CheckpointError::Note(NoteError::Signature(ORIGIN.to_owned()))));
    let unsigned = compose(&text, &[other.sign(&text, 0)]).expect("a text");
    assert_eq!(
        Checkpoint::open(unsigned.as_bytes(), log.verifier(), &[]),
        Err(CheckpointError::Note(NoteError::Unsigned))
    );
}

#[test]
fn a_checkpoint_of_another_origin_is_refused_though_the_key_signed_it() {
    let text = Checkpoint { origin: "log.example/other".to_owned(), ..head() }.text();
    let key = signer(1);
    let note = compose(&text, &[key.sign(&text, 0)]).expect("a text");
    assert!(matches!(
        Checkpoint::open(note.as_bytes(), key.verifier(), &[]),
        Err(CheckpointError::Origin { .. })
    ));
}

#[test]
fn sizes_have_no_leading_zero_and_no_sign() {
    let text = head().text();
    for wrong in ["01", "+1", "-1", "", "1 ", "18446744073709551616", "0x1"] {
        assert!(Checkpoint::parse(&text.replacen("\n1\n", &format!("\n{wrong}\n"), 1)).is_err(), "{wrong}");
    }
    assert_eq!(Checkpoint::parse(&text), Ok(head()));
    assert!(Checkpoint::parse(&format!("{text}extension\n")).is_ok());
    assert!(Checkpoint::parse(&format!("{text}\nextension\n")).is_err());
}

#[test]
fn a_note_of_more_than_64_signatures_is_refused_and_one_of_16_is_not() {
    let text = head().text();
    let line = signer(2).sign(&text, 0);
    let with = |count| compose(&text, &vec![line.clone(); count]).expect("a text");
    assert!(Note::parse(with(16).as_bytes()).is_ok());
    assert!(Note::parse(with(64).as_bytes()).is_ok());
    assert!(Note::parse(with(65).as_bytes()).is_err());
}

fn policy(quorum: &str) -> Policy {
    let (log, a, b, c) = (signer(1), witness("w/a", 3), witness("w/b", 4), witness("w/c", 5));
    let text = format!(
        "# ours\nlog {} https://log.example\nwitness a {}\nwitness b {} https://b.example\nwitness c {}\n\ngroup two 2 a b c\ngroup every all a two\nquorum {quorum}\n",
        log.verifier(),
        a.verifier(),
        b.verifier(),
        c.verifier()
    );
    Policy::parse(&text).expect("a policy")
}

#[test]
fn a_quorum_counts_witnesses_and_groups() {
    let keys: Vec<Verifier> = policy("none").witnesses().to_vec();
    let reached = |quorum: &str, places: &[usize]| {
        let cosigned: Vec<&Verifier> = places.iter().map(|place| &keys[*place]).collect();
        policy(quorum).check(&cosigned).is_ok()
    };
    assert!(reached("none", &[]));
    assert!(reached("a", &[0]) && !reached("a", &[1, 2]));
    assert!(reached("two", &[1, 2]) && !reached("two", &[1]));
    assert!(reached("every", &[0, 1]) && !reached("every", &[1, 2]));
}

#[test]
fn a_policy_names_each_key_once_and_only_what_stands_before() {
    let key = witness("w/a", 3);
    let key = key.verifier();
    let wrong = [
        String::new(),
        format!("witness a {key}\n"),
        format!("witness a {key}\nwitness b {key}\nquorum none\n"),
        format!("witness a {key}\nwitness a {key}\nquorum none\n"),
        format!("group g any a\nwitness a {key}\nquorum none\n"),
        format!("witness a {key}\ngroup g 2 a\nquorum g\n"),
        format!("witness a {key}\ngroup g 0 a\nquorum g\n"),
        format!("witness a {key}\ngroup g 2 a a\nquorum g\n"),
        "quorum a\n".to_owned(),
        "quorum none\nquorum none\n".to_owned(),
        format!("log {key}\nquorum none\n"),
        format!("witness none {key}\nquorum none\n"),
        "sum a\nquorum none\n".to_owned(),
    ];
    for text in wrong {
        assert!(Policy::parse(&text).is_err(), "{text}");
    }
}

#[test]
fn a_proof_file_proves_its_entry_and_no_other() {
    let leaves = leaves(300, 1);
    let tree = Tree::new(&leaves);
    let key = signer(1);
    let (checkpoint, note) = signed(&tree, 300, &key);
    let file = ProofFile {
        extra: Some(b"salts".to_vec()),
        index: 299,
        path: tree.inclusion(299, 300),
        checkpoint: note,
    };
    let read = ProofFile::parse(&file.text()).expect("a proof file");
    assert_eq!(read, file);
    let policy = Policy::of_log(key.verifier().clone());
    assert_eq!(read.verify(&leaves[299], key.verifier(), &policy), Ok(checkpoint));
    assert!(matches!(read.verify(&leaves[298], key.verifier(), &policy), Err(ProofFileError::Proof(_))));
    let moved = ProofFile { index: 298, ..read.clone() };
    assert!(moved.verify(&leaves[299], key.verifier(), &policy).is_err());
    assert!(read.verify(&leaves[299], signer(2).verifier(), &policy).is_err());
    let asks =
        Policy::parse(&format!("witness a {}\nquorum a\n", witness("w/a", 3).verifier())).expect("a policy");
    assert!(matches!(read.verify(&leaves[299], key.verifier(), &asks), Err(ProofFileError::Quorum(_))));
}
