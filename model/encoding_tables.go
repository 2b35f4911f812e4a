package model

// What a step from one character to the next begins of tokens (Pairs), and by what that
// is multiplied with how far in the run it is (Runs); see scan. The numbers were fitted
// by a program to what real tokenizers do with some four megabytes of texts, and are not
// to be edited by hand: docs/limits.md says which texts and tokenizers.
const (
	o200kPairs = "" +
		"3lHlllmlllkllZlllllllllllllrllll8lllklk9lmm;,FN^8Bl\\Slkdk~ 3LHllam_l`dZYallllllllllllj_bikl8ll_lkkLimm;,F\\+BBkNSlkdk" +
		"h ll*llamKld]lllllkllllllllklXfYlltllW]llJPmm;,FT+IBbXSl_ijh   Hm am        #  *    &   !   &%     =! mm  #     FA6." +
		":\"f llHl lmlkllaigllljVllYlTlfkTllJj8llllllrTmmllollllbL]llmlt $CBm*Qm5lfG1cSPacUVkblQTlHOTTKJa8lOl.lk8Fmm;,F0+8BLNS" +
		"kRXDh 3L5m6am5PE>1<LFWNUV_]KQTRHOTT>Ja8gG3.Mk8Fmm;,F0+8BLNSkRXDh la5l!am$+E>1<CPGNUV!/8QTY `_T Ta8g_3.ck8Fmm;,F0+8BL" +
		"NSkRXDh llHl amZ&!\" %SQ!X= (&! .)] cE0& !>4'.'k8Fmm;hfNJ8RLNTGRjnh ilHl#am'O A><NFWNUVcNhMTRHOTT>Ja8gN3.Mk8Fmm;,F0+8" +
		"BLNSkRXDh ilEl+am5jK>7<Y*WVUV_dDQTRHOT`>Ra8KG!.Rk8Fmm;,F0+8BLNSkRXDh kjGl!am5R8>9<E$ENZV81KQTKHOTT3Jc6gS3.`k8Fmm;,F0" +
		"+8BLNSkRXDh RdCl%am5T,>1!Y<WPUV_]KQTREOTT>Ja_UM3.Mk8Fmm;,F0+8BLNSkRXDh <kGl!amH27;-B:A\"NL ,%#$'%F*6+2$#:,e$G7aNUmm;=" +
		"FS+8B_NSkRZDh ONHl am  F/!! 3  OV*_&;M=HHRT &b)$  7M]Z)mmjlflkjj)NSkV`mh UL@l am#OB>MAS!\",? (\"2  @`??T03%@g<&-0k8]mm" +
		";,F&g8BONS>fjAh llGl am0hEM1<c[>\"Z ki\"lXU@KTThRl8Zk3.lkfimm;lF0g8KkNSlllnh M]Gl!am5HEfRI<B>N'Ql`NU&R8TTTB<48gj<.Mk8F" +
		"mm;,FB+8BLNSkRXDh ObHl am5%ED\"<E>GNU_WHKMT/HOTTT2b8I\\/.Mk8Fmm;,F0+8BLNSkRXDh .DHl/am5EE:e<P:R_l>\">gVC\\/ T`.Ak8Mk/aRk" +
		"0FmmU4FZ6^RhNSkRXfh $%Hl am5,#2=EH*#(j\"F  ;T#HOXVM+U8!R,.ak8Wmm;)s0SB/LNSkbgWh GAHl'lm5/!$!C2L?1=EI! Q[bB ,Xa?lG'l ." +
		"MU8Fmm\\gFP9ZBLNSkZbhh V_Hl am5! ( <DLR>PVd* !]. T<T (;Dg&!.Mk8Fmm;,F0+8BTNSkRXDh ZkEl am5-E>1%e=ENUVd<\"SL)HOaT>>d8gG" +
		"U. k8Fmm;,f0+8BLNSkRXDh ddFl3am PE>3<bLWNUVO] ^T,\";\"T>Ja8gG8.MkVFmm`,F0+8KLNSkRXDh K8Hl9am5 E-\"\"\";WQj^Ga:QTD! YH##d@" +
		"_=$.Zk8Fmm;,F0+8BLNSkRXDh gcGl cm5FE\"1$9'5eU$/#=&2 #DVV\":S8hD..Mk8Zmm;`F0k8BiNSlZkbh eX7l!am5PEB1WOI8cUV_$Z!T:H'AT>H" +
		"f8gY3.Mk8Fmm;,F>+8BLNSkRXDh ahFm6am5^HQ7<`FWNU\\_]]QTRHO`T>Jg8XN3.Mk8Fmm;,F0+8BLNSkRXDh ]kHl&amk!jD\"<!.Wg[C*HF$TlPOTe" +
		"J[!($#b.MkCFmm;jF09JBLNSkZngh Sj>m!am5&E4=<9FYTUV_CAQTRHOTTP<e8gd37Mk8Fmm;,F0+8BLNSkRXDh if5l am57E>19U\"&5\" a+)! #/A" +
		"8T!L@8]l@.Kk8Fmm;,FS+OBLNSkRXDh idEl6am5UED1AV;WNUZ5bkQW]HOT`;2a8g\\3;Mk8Fmm;,F0+8BLNSkRXDh '$Gl#am=[E01<P&ELU _#><1R" +
		"[O]T;3i84i2.TkLFmmO,F>98B\\NSkRXDh llHl ame/j((FMMClZ l#*Z9MiSmlV]$fg6DhPkQZmm;AFGbBBiNSll^lh laGl amc&E+\"A;PWljV_cKQ" +
		"TRHOT7cGb8hJ\".#k8Fmm;,F0+8BLNSkRXDh dkCl am5PE>1<@WXN\\Vj^KQVR-OTTDNa8gh3 Mk8Fmm;,F0+8BLNSkRXDh GR5l amd)E@1*PJ(N=#86" +
		" +#!HKICE!d8G#4.<k8Fmm;,F0+8BLNSkRXDh NLBl\\am5TE>1<QFWNUV_]4QTRHOTT>Ja8gG3.Mk8Fmm;,F0+8B^NSkRXDh 0j5lkam5hE>1<QFkhUk" +
		"llKkXRHOTT>Mg8gW3.Mk,Fmm;,F0+8BSNSkRXDh liAl/am5PE>l<LFZiU\"f-KNT^HOTT>\\a8gM3.Mk8$mm;lF>+8BLVSkRXDh 3L5m6am5PE>1<LFWN" +
		"UV_]KQTRHOTT>Ja8gG3.Mk8Fmm;,F0+8BLNSkRXDh 3L5m6am5PE>1<LFWNUV_]KQTRHOTT>Ja8gG3.Mk8Fmm;,F0+8BLNSkRXDh 3L:llamGPE>1<LF" +
		"iTUkel_k\\RHdTZ>Ja8jG3.Mk8Omm@,F0+8BLNSkRXDh 3L5llam`iE>1<jLllUlllil_eHO^T>Jk8gR3.Mk8lmm;-F0+8BkNSkRXDh 3L5l6am5dE>1<" +
		"LFbNUl_lKQTRHOTT>Ja8gG3.Mk8Fmm;,Y0+8B_NSkRXDh 3W5llam5]E>@<^[lN\\`flflTRHOYTGJa8gO3.Mk8Omm;,F2+8BjNSkRXDh 3L5l%amC`E>" +
		"1<LFkgUlhbPlTRHOTT>Ja8hG3.Mk8Fmm;,F0-8BLNSkRXDh 3L5llam5PE>1<LFkNUlkl^lTRHOTT>Je8gG3.Mk8Fmm;,F0l9BLNSkRXDh 3L5llam5Y" +
		"E>?<LFgTUfdlKk\\RHUYT>Ja8gG3.Mk8Fmm;,F0+8BLNSkRXDh Ul=l6am5PE>l<bFHcU!@,K?ThHOTT>Ja8ja3.MkaFmm;[f'+BBfN_$Rdgh 3O5l@am" +
		"5PE>1<LFWNUW_cKQTRHOTT>Ja8gG3.Mk8lmm?,F0+8BLA[lRXD~ 3L5lkam5gE>1<LFhNU__gKQTbHOTT>Jh8gG3.Mk8Fmm;,F098Blz`lRXDd hlAl " +
		"am5aE>1<LMWlUV__K^T^HOTTDJh8gl3?Mk8Fmm;,F0+8B7pe<YSDh <kAlcam5_E>1<LFakUV__XlTYHOTTKJh8gk3.Mk8Fmm;,F0+8BRNSlLmDh 3Q5" +
		"llam5kE>1<PFWlUV_da_TkHOTTiJl8gM3.Mk8Fmm;,F0+8BlNXljXDh 3L>ljam5kE>1<RkllUlhlhlTZHOcT>Jk8gG3.Mk8Fmm;,F0+8BdNSkRXSh 3" +
		"L5l@am5PE>1<LFWNUV_]KQTVHOTT>Ja8gG3.Mk8Fmm;,F0+8BLbWkRXDl llom!Xm^ll\\ikllklbVlllk]ll``llll8llllll8FmmY,FB+8KLn~kRhDh" +
		" &   =! !!!    0 (   ! \"!!!-(=5#B>R-\"=\"ZG$XR&8:)[L: K)718!9e ') !C3$6A\"% $5JP\"-0/A!\"/(I);?&=G)0O*%=),M1#G%&) /$%2.9(" +
		"!\" 4,\"  !0$& %.#?91%!6G$CD$,K\"7M$, (6a:!D2CKX#Q%\"1//$7'+ZW&&),>FE=E(=ZI!L!R*I.-A+#M1.< %L633-%   !  %.!      $   < 9" +
		"\"/ ,M];#6E<%L\"2E;*H:H %.2HB2H.$K/#**B+G'7H)2QI@'&.R4@,C*-C\"!\"+))B4!G<#,,C%\"'39O N*!Y(\"R';.T>%.-%&<9\"/2YJ/,7,J# \", C0" +
		"0'/C$%/GP!!*89K$2%\"! <\" %$#    )!E  \" \" ( ,$24*\"/2\"*K/\"(2\"#=#! (80,-_,C7MEUPJ0VS!)Q0F3/2, X<M@S';#$!4\"8(@&;%#\"8*%#!+" +
		"#,6%K/Q*<%65\"'^&246'(&\"! +>%E.;0G'+#0B $A/3';#\"[##\"'=0$#/#\"\" ! !+$'!   0!L   -6.#7%#H:Z Y#L&TIC%H(=K7W7@dLK67(QR-\"BD" +
		"#)LPB8%#YL&-6NJ 81d%:0;*+\\A-ZZC#G='jW9%=RW0\"3>R6!2b';.XI'&!$#Z1\"$TUE_;33bKP%RY7&I.B\\-K[XQ`$+G>N'$3 #!/( *#-\"   2 '  " +
		" 0 %  ($#*6)'18,68!+5'C\"-)>\"1!+!,#(#'$', )2 #/;,!4)*!3*22\".'$/'!$$)##!)#)#.5+#%21.*(9'\"(!+'\":>A2$\" .%( #!2*/!%*!!\"&," +
		"\" 4\"=-&2,!/@5% 3!( (9/&1?!.7&0C3&-!,;A(*,975@-H#+%1\"03\"(62!77&&9() </,\"'*%&! !  )%0#   ! 5 ! &!% = .\"$,!7597#1!9<%3D" +
		"( 8,8!>D>3$9<(<'4(B\"*0%+(:;02;%-?66,0() +6,#C<+,?#6?9#+!8+B(F')2\"#1,3-&A '0&%.1%522-\"#C15+\"&$ -42+%&.+0=:#\"\"#.,!*&&-" +
		" :#!?/)#&  +!4 \"\"## '9;)1%/.///!4& \"(%&%$\"$(789)A.%*=B@BB7CB /@E9!.3/!2H=@B'2%(#5(?*9\"\"%&!):\"%!')/# A#-&\" (6$,<)($4!" +
		"*\":# %2!02)%3,:$(F!+.++\":\"!:\"2!(+1/&0) +\" ( :\"2!   A#7   $'- %8*<!<$H F&? 0'.!%C*&\"4)2-;@#)3!<.7'*9-<4+%1? 3 0/ *-?6" +
		"3:3/5D@'AD(\"=>'B$7+A8A !5&=0@<B7@AB5,>'.$%;%2?=1:!7@==8#A$09AAD35+==0,1,A'&\"!"
	o200kRuns = "" +
		"-----------------8@?C?D=6>:4201/9  ~  ~  ~!!~$$~-----------------!2--------------,-.....-------------------------%%%" +
		"%%%%%%%%%%%%-(&--------------%(,-----------.-+++++++++++++++-*'(((((((((((((-%((((((((((((((-&.--------------&,-.---" +
		"---------!)-------------- ,,,,,,5,,,,,,*-!,--------------/---------------!>&-''(0***+++8-!%,-----------/-\",+--------" +
		"-----$'---------------//////////////-#---------------$'++++,5,,,,.,4-/(-------------,*00000000000000-+++++++++++++++" +
		"-.)/)/+-,,,,,,,,-7#-0-..........-&.,.,+.........+&&&&&&&&&&&&&&&- *-------------- 9--------------(,,,,,,,,,,,,,,-%&&" +
		"&&&&&&&&&&&&-%1,-------------///////////////,':+++++++++++++-$**************---------------------------------'**.((0" +
		"%%%%#%&$-'&,,/0//+&%)##%+#('%%$##$($%%%%-$)0-.-(((,*1)**-\"&**1&,)&''''''-)*.,.,-))&'%%'(-'+/,,--'-((&-'*-+,)))))))))" +
		"))))8=!1111111111111<::@@@@@::::::::-$+--------------*,--,,*+-+,-+.--,.,--,-----,.---(-'''(%)))))))).-,,,,,,,,,,,,,," +
		"----------------,!%*.007</+30-0L2-54130:=3B7:=W=,-225000.3../(.:"
	cl100kPairs = "" +
		"3fGllkmllloklllllllllllllllrqlll6llljlkGlmmD:YkfVYGh^lqUT~ 3KGllam_l`fZYllllllllllklkj[cikl6ll_kjk[immD:YeJ\\YGT^leUR" +
		"i ll*llamKld]kklllkllllllllklRhYllxllW]llPQmmD:YbJ`YEc^l]]Ri   Gm am        #  *    &   !   &%     =\" mm(!6%2GU$@JLM" +
		"H3f llGl lmkklrahhkkljVlllkTlekNplIj6klllllsTmmnbZmemZEfhlb]ct #=Bl)Qm5leE/cZPabVVjblPTlHONRKIa6lOl.lkDGmmD:YTJVY=T^" +
		"kYWJi 3K5m4am5OE</<VFWIVV_]LPTQHONR>Ia6gG3.EkDGmmD:YTJVY=T^kYWJi l`5l!am*+E</<@ILIVV!/9PTY _\\R =a6g_3.akDGmmD:YTJVY=" +
		"T^kYWJi kkGl amZ%!\" %R7!WD ('! 0(\\ #F0&!!=3(.&kDGmmD_Z_[VY=T\\lY\\`i hlGl#am'O @=<IFWIVVbNhLTQHONR>Ia6gN3.EkDGmmD:YTJV" +
		"Y=T^kYWJi ilEl*am5jJ<6<^'WRVV_cDPTQHON_>Xa6KG!.KkDGmmD:YTJVY=T^kYWJi jiGl!am5R8<9<N$EIZV8GLPTJHONR3Ic4gS3._kDGmmD:YT" +
		"JVY=T^kYWJi QdCl%am5T,</!P<WLVV_]LPTQEONR>Ia_UM3.EkDGmmD:YTJVY=T^kYWJi BkGl!amH274\"B=9\"MK .##$'%F'4+2\"#9*d%)7[PVmmDw" +
		"YaJVYXT^kYVJi NNGl am  F/ ! 0  OV*^6;M<HHPR %b)$\" 6E][dmmMaZnin`GU^kZVsi UK@l am#LB<LAO!\"*? (\"2  @`?:R'4%>g9&-0kD^mm" +
		"D:YbmVYCT^g_YRi klGl am1hEL/<VX=\"Z kh!,XU@KNReRl6Zk3.$kbimmDbYTcVYGT^ldZ\\i GVGl!am5HE\"5H?9=I'Ql`NU&Q7TNRB<46gj<.EkDG" +
		"mmD:YZJVY=T^kYWJi L^Gl am5!EB\"<C>FIV^W3LLT/HONRT3b6I\\+.EkDGmmD:YTJVY=T^kYWJi -IGl!am5EE8e<?:R^l>\">fUC[. N_.Ak6Mk/eKk" +
		"8GmmMbYlfmYFT^kYWbi #$Gl am5+#1<E5)6(j\"F  ?T$HOSUM(V6 T,.]kDWmmDaZT\\\\z=T^k^aNi D@Gl'lm5/!$!C0L? =E(! P[aB *Va?l6'l ." +
		"EUDGmmQ^Y`RcY=T^ke]li M_Gl am5! ( <@LR>PVc* D]. G9R ':Bg&!.EkDGmmD:YTJVYKT^kYWJi ZjEl am5-E</%V=EIVVd<\"SL)HO]R>>d6gG" +
		"U. kDGmmD:zTJVY=T^kYWJi dfFl2am OE<3<dLWIVVN] ^T+\";\"R>Ia6gG8.EkXGmmG:YTJVY=T^kYWJi G7Gl7am5 E-\"\"\";WMj^Ga;PTC! WG##d>" +
		"P=$.UkDGmmD:YTJVY=T^kYWJi d`Gl cm5FE\"/$:'5eV$/!=&2 #CPU\":S6hD..EkD[mmD[YTnVYIT^l[YYi dW7l!am5OEB/WTI8aVV_$Z!T:H'=R>G" +
		"f6gY3.EkDGmmD:YYJVY=T^kYWJi ahEm4am5?HP6<cFWIV[_]]PTQHO\\R>Ig6XN3.EkDGmmD:YTJVY=T^kYWJi \\jGl&amk!d8\"<\"%Wg[C!HF$T7OON)" +
		"JC!)$#@.EkKGmmD`YTR`Y=T^k[oii Sj>l!am5&E3<<7FYPVV_ABPTQHONRP;e6gd36EkDGmmD:YTJVY=T^kYWJi ef5l!am54E</9W!&+\" a**! #/6" +
		"5R!LD6jl?.KkDGmmD:YaJcY=T^kYWJi hcEl4am5TEB/A\\;WIVZ5bkPW]HON`;2a6g[3:EkDGmmD:YTJVY=T^kYWJi &#Gl#am=dE//<N&DIV _#=<1Q" +
		"[OYR;3h64i1.NkQGmmE:YYJVYCT^kYWJi klGl ame/j)(FNMCkZ j#*Y9MfSlqU9$gg7DhHkT[mmDGY\\i\\YGT^lcVSi kaGl amc&E+!A9FW jV_bLP" +
		"TQHON7cGb6hJ\".#kDGmmD:YTJVY=T^kYWJi dkCl am5OE</<GWXI]Vb^LPVQ-ONR:Ma6gg3 EkDGmmD:YTJVY=T^kYWJi GQ5l amd)E@/*OJ'I`!7." +
		" +#!HKDCE\"c6G#4.5kDGmmD:YTJVY=T^kYWJi NKBl\\am5TE</<YFWIVV_]4PTQHONR>Ia6gG3.EkDGmmD:YTJVYDT^kYWJi >i5lkam5gE</<YFkhVk" +
		"klLkXQHONR>Lg6gW3.EkKGmmD:YTJVY@T^kYWJi khAlGam5OE<l<VFjhV4fdLjT^HONR>\\a6gM3.EkD$mmDaYYJVY=`^kYWJi 3K5m4am5OE</<VFWI" +
		"VV_]LPTQHONR>Ia6gG3.EkDGmmD:YTJVY=T^kYWJi 3K5m4am5OE</<VFWIVV_]LPTQHONR>Ia6gG3.EkDGmmD:YTJVY=T^kYWJi 3K:llamGOE</<VF" +
		"iPVkel`j\\QHcNX>Ia6jG3.EkDPmmI:YTJVY=T^kYWJi 3K5llam`iE</<jLllVlllil_eHOZR>Ij6gR3.EkDlmmD>YTJVYGT^kYWJi 3K5l4am5dE</<" +
		"VFbIVl_lLPTQHONR>Ia6gG3.EkDGmmD:bTJVYDT^kYWJi 3V5llam5\\E<?<b[lI\\`flflTQHOTRGIa6gN3.EkDPmmD:Y^JVYIT^kYWJi 3K5llamC_E<" +
		"/<VFjfVlhbQkTQHONR>Ia6hG3.EkDGmmD:YTTVY=T^kYWJi 3K5llam5OE</<VFkIVkkl^lTQHONR>Ie6gG3.EkDGmmD:YToXY=T^kYWJi 3K5lkam5Y" +
		"E<?<VFgPVfclLk\\QHUTR>Ia6gG3.EkDGmmD:YTJVY=T^kYWJi al=l4am5OE<l<dFiaV!k0L?TgHONR>Ia6ia3.EkgGmmDiZiJ\\YJTk4YX_i 3M5l>am" +
		"5OE</<VFWIVW_cLPTQHONR>Ia6gG3.EkDkmmD:YTJVY=<ilYWJ~ 3K5llam5fE</<VFhIV__gLPTaHONR>Ih6gG3.EkDGmmD:YTRVYn~mlYWJf hlAl " +
		"am5aE</<VMWkVV__L]T^HONRjIh6gl3?EkDGmmD:YTJVY,~kQd]Ji <kAlbam5_E</<VFakVV__XlTYHONRLIh6gk3.EkDGmmD:YTJVY?T^lWgJi 3P5" +
		"llam5kE</<XFWlVV_da_TkHONRiIl6gM3.EkDGmmD:YTJVYGT]lcVJi 3K>ljam5kE</<ZkkkVlhlglTZHO`R>Ik6gG3.EkDGmmD:YTJVYET^kYWTi 3" +
		"K5l?am5OE</<VFWIVV_]LPTUHONR>Ia6gG3.EkDGmmD:YTJVY=qhkYWJl llom!Xm^ll\\hklkklbVlllk]ll`\\plll6lkllllDGmmF:YZJVf=mpkYjJi" +
		" 6!\" 7) \"\"$!   - 3   #! !\"!.)87&ADS/!I#CD&RP'6?-RX<!I)5-8&=\\ *; \"<C#7>$% '=GI\"11,D!$.(P-8>(>O,2X+%<.-P/$M$+# 6#'25@3" +
		"#! 3'!  !9)$ $5#B63&!?_%SL#*T\"8I&.!(L[F#W5FON%M*#3T@+8'+_W&%,/=WFBC'C\\P\"OLD+IC.A1$R93< -P8>0<$   \"  '/\"!   !!&   ; >" +
		"\"; /IYH%NW:(H#KE?.D88$_98LRNQ50D1%)+@0FV9I14:IZ)+.J;J#]+1G\"!\"I1)P4\"T:#+0:$#(25P .*$Y)\"T)B-XA%/6%&E6$48SE;)B,O# %, E," +
		"I(1?*&0CP! /2VP&:##! F\"!3%(!   )!A \"\" $ &#:&46-$E@ *J1#+7)#;#\" .73,\"W@C@IDRR?5UN\")LNB252, 0&IQO)F#&!2#N)F)?%#\"2G'#!." +
		"\"4:%J2M,?%37!(U%912))5\"! ,=*C-:2F&)%1L &@>1)>%\"\\##$)O2##>* \"!!\" .'(%   0!U ! -61#=(%H6Y!P#G)OFN$>,=WH82@_HIDK*PB0&FC" +
		"!-HPA:##8I%09LP!.4]%;*I'*[F,SUB#FF%iV5\"FNR/\"*CT+a6W)92U_''\"&#W3\"%PY@V72:WKZ'Md6*MAZ_:JRTT\\)1VJH(#1 # /( 1%&\"   / &  " +
		" --%  '$)#5()59)#6!\"5&A9,(<\"(2*!?#'#(#&% (@ #-8%\"<0)!1(11 @($-&!$#)$#!)#)\"-@*(&50.)'@'\"$!*-#8;?1## )%! \"!/(.!(.!$\"#+" +
		"\" 2\";,%#+!-?3% 0>( '71 18!-#%/?A (!'9?()-6641,E\"#%/!11!'?-!53&%7\"( 9.+ %!$&  !  +%/#   !!21! &!$ ; *\"$)'A=75#!;8A$1B" +
		"& 6@6#=B<1$7:'<'9$>\"'/%:(9:00?$0=56(/-( *:<&A9&+1\"4>8\"(!9<@(3%&1!\".12*%> &/%%-7%311-\"#3-/'!## 60()%&%).<9\"!\"$0+!\"&-+" +
		" 9\"#>50#&  )#3 !\"#( &::)6%.,..* *# \"-%%:#\"\"(808&?,$)?>>@@?@@ .>B.!90-!=E;>@%.\"'#1$>)@\"!&% '9 $!().- ?\")%! (5$+;('$5!" +
		"\"!7# %1!/$)&0*8#(C!$@!(!8\"!8#0!'*0,$/- '\" & @!@!   ?#6   $&9 $=\"9%7#E C&> &&-$%A/%!;(A@:?#(.!:-5&)8#53&%B>!2 == %C=4" +
		"*96*3B?$?A!\"AA&@$/%?>@ !?&<6?;@5??A<+<+.%$;%+=<09 6:<<?$5?-@??A?**;;/@5>?,&\"!"
	cl100kRuns = "" +
		"-----------------:ABEAOE;?=522./9  ~  ~  ~!!~$$~-----------------&,--------------,-.....-------------------------%%%" +
		"%%%%%%%%%%%%-&&--------------%(,-----------.,,,,,,,,,,,,,,,,-*'(((((((((((((-%((((((((((((((-%..............-$,-.---" +
		"---------!)-------------- +,,,,,5,,,,,,+-!,,,,,,,,,,,,,,-/---------------!?'-''(**+++++:-!%,-----------/-$(,--------" +
		"-----!9---------------//////////////-#---------------&(++++,,,,,,,,8-/(-------------,+00000000000000,,,,,,,,,,,,,,,," +
		"-.)/)/+,,,,,,,,,-8\"-0.//////////-%.,.,-.--------*&&&&&&&&&&&&&&&- *-------------- 8,,,,,,,,,,,,,-(,,,,,,,,,,,,,,-%&&" +
		"&&&&&&&&&&&&-#2,,,,,,,,,,,,,-///////////////--1--------------$))))))))))))))--------------------------------99888888" +
		"88868757/.)0,/+0,,*(2&**11111/25/8001111-,+.-,*+%)-...,,96657845855666669<:6777879867878100.100000111110985333333333" +
		"333323!,,,,,,,,,,,,,CBBDDDDDBBBBBBBB-,)-------------/,/0//0/./000///3342333333343332443.+-))22222222.-,,,,,,,,,,,,,," +
		"----------------.#*/1689<357:I7C4.632339?4@BC=W@.-//2.0..1/185.-"
	gemmaPairs = "" +
		">dooonmioomiooooooooooooookonoooRoooiok4imm<,JN]DBi\\]om`iYa>Oooo[m^obeZZoooooooooononqZbknoRooailkBgmm<,J\\/LBiU]omai" +
		"Paooooo[mJof^inonomoooooooonhRfZoooooY]omHPmm<,JT/RBa\\]mWYiPa  omo[m        \"  *    &#  !   &/     =  mm  #  !  WE1!" +
		"0#! oooo!omimooakjnnolUooonSogtNmoGlRnooiontSmmiiniiooaoinooiVaoomnm m5ohG3dZQacUUlboOSoHLNRLGbRnOn.ok3Fmm<,J1/DBLU]" +
		"k@LMPa>Omml[m5PH?3=UFTHUU^\\LOSWHLNR?GbRgF4.Dk3Fmm<,J1/DBLU]k@LMPaocmnn[m$'H?3=@PEHUU!09OS] b[R <bRg`4.+k3Fmm<,J1/DBL" +
		"U]k@LMPaooooo[mY !$'%BT!^D %\"\" !/] $E=$!#,(5.(k3Fmm<ffN?DSLUbn@liPaoooon[m'F!B>=IFTHUUNMaKSWHLNR?GbRgM4.Dk3Fmm<,J1/D" +
		"BLU]k@LMPaoonom[m5eN?9=_'TRUU^-EOSWHLNV?QbRKF .Ek3Fmm<,J1/DBLU]k@LMPaonnon[m5S:?\"=MACHZU72LOSZHLNRPGdOgS4.%k3Fmm<,J1" +
		"/DBLU]k@LMPaomnon[m5T(?3!^<TKUU^\\LOSWELNR?GbbUM4.Dk3Fmm<,J1/DBLU]k@LMPaoonoo[mGDC;-B*M!PL ,!1!'&M-?+;!$N.I\\G[atUmm<f" +
		"JS/DB^U]k@QMPaooono[m  !0\"! 0 #OU*a8:L>HFTR #c3&# 7D]Y)mmhifiill%W]kHYiPakOmoo[m#NE?MBH #2@ (!2  BCA9R=1$Og8!-:k3]mm" +
		"<,J0-DBOU]:djiPaoonoo[m0iHN3=V\\:#Z j\"!\"WW@INRbRdRZm4. kfgmm<iJ1fDLiU]onoiPaooooo[m5MH\"7II9=H)QnZOT&W8RNRC;5Rgl=.Dk3F" +
		"mm<,JB/DBLU]k@LMPaooooo[m5,HEJ=0>;HU9VHLKS1HLNRT-cRj]m.Dk3Fmm<,J1/DBLU]k@LMPaooooo[m5EH;c=>5P`n>!e+TC9. N_.?+RMn/dJk" +
		"IFmmUiJY]mSfU]k@LfPaooooo[m5-#B<F9'\"\"l\"E  :S<HLGTN*VR!c?.^k3Wmm<hq1TL\\LU]k\\f[Pamoooonm5/!'!a3D, >FE! O[6B *L$>nW'n ." +
		"DU3Fmm\\eJP;_BLU]kN]gPaooooo[m5! ( =5LP&PHf* #YC%E9R>)5Vg,!.Dk3Fmm<,J1/DBSU]k@LMPanmnoo[m55H?3%c=DHUUd@\"RK.HL=R?QeRgF" +
		"W. k3Fmm<,f1/DBLU]k@LMPajonom[m#PH?_=fMTHUUO\\ ^S.\":!R?GbRgF9.DkTFmm`,J1/DLLU]k@LMPaoooon[m5 H-2\"#5TMkBFb;OSG\" VY+#QU" +
		"_C'.Uk3Fmm<,J1/DBLU]k@LMPaooooo^m5,H\"3(1O?VU$/,+!2M#EPTk9JRiF9.Dk3Zmm<_J1iDB^U]mNlcPan[mon[m5NHC3XAJ*cUU^$[ S<H!<R?F" +
		"gRgZ4.Dk3Fmm<,J>/DBLU]k@LMPaojnml[m5PKB9=dFTHU\\^\\^OSWHL[R?GhRXN4.Dk3Fmm<,J1/DBLU]k@LMPaooono[mi gE\"=$1Tj2C5IG'SnPLN)" +
		"EF r*\"i.Dk?Fmm<hJ1;RBLU]kNngPaommmn[m5)H4/=`FX@UU^CKOSWHLNR2#IRgf47Dk3Fmm<,J1/DBLU]k@LMPaohmoo[m5:H?3:T!%=\" `*)! e/7" +
		"5R!MDR^Y/.Qk3Fmm<,JS/VBLU]k@LMPalfnnl[m5UHE3B\\6THUK5bmOVaHLN;C1bRg\\4;Dk3Fmm<,J1/DBLU]k@LMPaoooon[m<gHU3=A%>IU!^!>41W" +
		"\\LYR<29RGk2.NkIFmmP,J>;DB[U]k@LMPaooooo[mc8mHiGnX*nZ o##,9JkQjonknfn EgHlOZmm<AJGbLBgU]onViPaonnoo[m$&H/\"B(FT lU^ILO" +
		"SWHLN6` cRhC\".(k3Fmm<,J1/DBLU]k@LMPagnnoo[m5PH?3=GXWH]Uc^LOOW-LNR;LbRgi4 Dk3Fmm<,J1/DBLU]k@LMPaTTmoo[mc1H-3*8O H= 70" +
		"\"'##HID[F!HRG').$k3Fmm<,J1/DBLU]k@LMPaTOnoo[m5TH?3=YFTHUU^\\5OSWHLNR?GbRgF4.Dk3Fmm<,J1/DB]U]k@LMPa.lmon[m5iH?3=YFmjUn" +
		"nnLnXWHLNR?JhRgW4.Dk,Fmm<,J1/DBSU]k@LMPanmmom[m5PH?i=UF@jU\"f&LOSaHLNR?\\bRgM4.Dk3$mm<iJ>/DBLY]k@LMPa>Omml[m5PH?3=UFTH" +
		"UU^\\LOSWHLNR?GbRgF4.Dk3Fmm<,J1/DBLU]k@LMPa>Omml[m5PH?3=UFTHUU^\\LOSWHLNR?GbRgF4.Dk3Fmm<,J1/DBLU]k@LMPa>Omoo[mFPH?3=UF" +
		"jPUmeoam\\WHhNX?GbRjF4.Dk3OmmB,J1/DBLU]k@LMPa>Omoo[m_kH?3=lMnoUoooko_hHLYR?GlRgR4.Dk3imm<,J1/DBiU]k@LMPa>Omol[m5fH?3=" +
		"UFbHUn^oLOSWHLNR?GbRgF4.Dk3Fmm<,]1/DB^U]k@LMPa>Zmoo[m5]H?A=b\\nH\\`fohnSWHLSRHGbRgN4.Dk3Omm<,J3/DBXU]k@LMPa>Omoo[mBaH?" +
		"3=UFmhUoibQnSWHLNR?GbRhF4.Dk3Fmm<,J15DBLU]k@LMPa>Omoo[m5PH?3=UFmHUnmo_nSWHLNR?GfRgF4.Dk3Fmm<,J1iHBLU]k@LMPa>Omoo[m5Z" +
		"H?A=UFhPUgcoLm\\WHTSR?GbRgF4.Dk3Fmm<,J1/DBLU]k@LMPaoomol[m5PH?i=eFIcU!A)L<SjHLNR?GbRjb4.DlnFmm<hf-/LBhUi$@ngPa>Qmom[m" +
		"5PH?3=UFTHUW^dLOSWHLNR?GbRgF4.Dk3immA,J1/DBL am@LM[a>Omoo[m5hH?3=UFiHU`^hLOSeHLNR?GiRgF4.Dk3Fmm<,J1;DBi`nn@LMqakomno" +
		"[m5bH?3=U?TnUU^_L]SbHLNRVGiRgo4?Dk3Fmm<,J1/DB6^i8ooMPaEmmon[m5`H?3=UF`mUU^_YnS]HLNRMGjRgn4.Dk3Fmm<,J1/DBRU]o9`MPa>Tm" +
		"oo[m5mH?3=XFToUU^dc_SmHLNRkGnRgM4.Dk3Fmm<,J1/DBiU`oUIMPa>Omon[m5nH?3=ZnnnUohoinS^HL_R?GmRgF4.Dk3Fmm<,J1/DBcU]k@L_Pa>" +
		"Omom[m5PH?3=UFTHUU^\\LOSZHLNR?GbRgF4.Dk3Fmm<,J1/DBL`ik@LMaaooomnim]oo]gmonmocUonon^ooc[nnooRnnoioo3FmmY,JB/DLLofk@hMP" +
		"~'!$!9&!\"!&# ! -!(   !\"$!!%\"&70!0AF#!7!?<!D>\"..!FC1 D#4(- 8h \"\" %%5!29!!!!-4? $(/:! /'?\"#<\"6@%(G%\"1\")9,\":!&&!*#'+'&+" +
		"\"\" *#   !+#' #&\"C8+\" @:\",0#,\" 5(#,!!+S:!G%BCD!G'!&=/#/#\"IK\"$%$8BC.?!3D5 C 6$4&$4+!M-'5!\"E);)+'!  \"! $'\"& !  !$!  ,\":" +
		"\"3!\"8P1!/C1!1!,5-!;5*!%$+/53=#(B+!#(5%+./8#%?;:#'\"I8+ ;#$7# !'(#@,!<4!',6\"#!,.6 D!!>* H\"B$40$))!#02\"1%;80%8#5\" !& 6#" +
		")%)/##/6>!!%,,4!+\"\"!!4!\"(\"$\"!  #\": !\" $!#!)\"*:&!&-!&31\"(?! 6!#!#01.*C*.763==;-AI\"+>-D.-.* .96 ?\"1\"\" *$.\"4$3#!!*&#\"\"$" +
		"!(6 6'6%,!*,\"!5#/,,\"#)#!!%-\"8%1&;$*!)1  2()'<!\"M#!\"\"<)%!(!\"#! \"\"#$$'   (!J  !+9*\"8&\"5.S I#5!F;?$>!3?+.00T<:2(\")?'!;3" +
		"\"%AN:0#!2B$)3<F 1'N#1+K%)IC%EA5%75$v>'!3=8(!-*6.0$J&3)?E#(!##M(#$0J6O#,%29Y\"BV+\"6%3?+&2JCS#%L75! 0   0( +\".!   1 '  " +
		" *#!  +#3)/%-6:'*7 #+!8\"\"&<!1!, -\"$%*#(/ %2\"\"\"/\"!2&*!,)/'\"((\")$\"'\")\"!!$$*\".0+\"'109/ :&#\" )&$73-4\"! '%!   3\". $/!!#%'" +
		"\"-+\"/9 4* #C!' (!) (\"%$'@!(,%(2'$- $2-!*,(:54 M!,3-\"34\"&7,$=?\"+:#1 80*  5#\"! \"  , 1\"    !3 ! %!# > ,##)!/3;7#3!9>%+@" +
		"! 9&!\">(#.$(8(;'.!%\" .1\"(\"9'.1#,6*$( &'!).)%<+$-8\"6:5!'!.,/'&$))\"\".+4+&9 &/\"'*0\"343!#!D.2' (\" \"$),%%)%.35\"\"##/2 \"'+%" +
		"!9# 9+($%  (!1 !\"!$#&7:&8##*,1#!4&!!/!\"%\"\"$(427%8-#,5F!=<965 1D-5!434 <@/0,&2'$#.'D%:$!&#!%/!$#'$-! 7\"*&#!&< %:&,\"7!" +
		"! +  $3!3%*%,':\"(<!#.+&!7  6$*!&+%&!0( '! & 2$3!\"  9(6   %(' #7#;!=\"N L$> /$0%&00' 6*37'8!)1!:.: %&#64'$'7!' //\"/.?-" +
		"7004??7\"15)$>9&*$<*C8<  /$2*8;588774,1'1(#9$$<<67 4.9>9\"C$208!734*/.0-2*8/&\" "
	gemmaRuns = "" +
		"-----------------4CDMIYD<L?=6/4.--------------------------------- &--------------$'*,---------------------------.%&&" +
		"&&&&&&&&&&&&-%&--------------!#*-----------;-,,,,,,,,,,,,,,,.'((((((((((((((-%((((((((((((((-'(.............-$,./..-" +
		"---------!*.............- +,,,,,,,,,,,,7-!.--------------'..............-&&(((()++++,,,Q-!$,-..........1-$(---------" +
		"-----&&--------------.//////////////-#..............-#.++++,,,,,,,,>,/(--------------,11111111111111----------------" +
		"-*------,,,,,,,,-%(/2///////////-'/-/-./........,...............- /.............-''--------------(,,,,,,,,,,,,,,.%&&" +
		"&&&&&&&&&&&&-$.--------------///////////////,&;+++++++++++++.$**************--------------------------------.&+*--(0" +
		"%%&&$'&&.$+*.-0./-#%)#\"',$)''&##&%)%&&&&.&)0,0-())3*1)++.#(*).+-((''''''---+-,+-))+&&%''-&,*,,-,'-,''-').+,*********" +
		"****-%%*************.----------------#+.............-*'+,-/+-.-.,-..-)0,..-.-.--...-.*-''''%********+.++++++++++++++" +
		"                2\"(36<=LJ]9MG5=j9-FC>FEJWU`CTK6S2'16?>2=>C7AE:7>"
	claudePairs = "" +
		">flllpmlllkklllllllllllllllrllrl<lllklkFlmm]BV\\hlmG`cmhQRl >PlllPm`l`gZ[llllllllllklkj[aipl<ll[kjkQimm]BV{NlmG`cmkLP" +
		"l ll1llPmLl]^kllllkllllllllklReYrlqllX^llJLmm]BVtNlmC`cmhQTl    i2Pm        #  9 [  '   !   +%     G# mm;\"3?5lm%g[ll" +
		"qAl lll\"eMmkkll^igkkliVlllkTlekNjlIi<klllllsLmmll\\\\flmCmfmlSal ll[k\\Um5lfP/dZQaaTVjclOTlGQNOKIb<lOl0lkCCmm]BVSNlm>`c" +
		"meQQl >PEikPm5OEI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl laEllPm$'EI/=@PKKTV!*9OTZ `\\O Tb<g_404kCCmm]BVSNlm>" +
		"`cmeQQl lllllPm5!\"& %BO!OC +(\" 0,X\"$D?&\"!>P[0&kCCmm]dZS_lm>``meQ_l lllllPm&E Q/=DGUKTVOW/KTSGQNO>Ib<gM40OkCCmm]BVSNl" +
		"m>`cmeQQl llfllPm5$KI-=I*UTTV`/aOTSGQN^>Rb<JG!0SkCCmm]BVSNlm>`cmeQQl lkjllPm5R_IF=X(DKTV8-MOTVGQNOOIbCgS40]kCCmm]BVS" +
		"Nlm>`cmeQQl lkallPm5O1I/!\\QUNTV`^MOTSDQNO>Ib`iX40OkCCmm]BVSNlm>`cmeQQl QlkllPmH27? E%>!MN #$$!$&FB0)-\"\"3)HG*]\\VTmm]d" +
		"VSNlmR`cmePQl lllllPm!  7!! 6  WV-_G:M5GI1O #cb&&!8ObOdmmgfZZilmG`cmhLnl iPZllPm=LBI2C1\"$4? )!2 !3`E4O$1#8g1@.7kC\\mm" +
		"]BVunlmD`cmjQPl lljllPm5FEV/=TX.#Y $ # Wj?SNO\\O*<Zj40lkSimm]fVSflmG`cmhQ[l lllllPm5BEg>J69;K.XlkZS&S7UNO<<B<gj=0OkCC" +
		"mm]BVSNlm>`cmeQQl lllllPm5!EN%=EM@KTVXHMKTfGQNOT?c<iah0OkCCmm]BVSNlm>`cmeQQl lllllPm5OEN\\=D:Z^i> ^+T\\i.&N^.Aj<ik/fSk" +
		"KCmm`fVZhlmG`cmeQxl lllllPm5(iY4G4]$\"j\"F  :T#GQSRB-O< f40akCVmm]e\\S\\lm>`cmjNXl lllllqm5+!U!a,MD!&H.! O[_A 'Ta4lt,k 0" +
		"O_CCmmicV\\Vlm>`cmeQjl lllllPm5! d =1MQ+OHe- F]/&Q^O<(.Gg'!0OkCCmm]BVSNlmL`cmeQQl kjellPm53EI/3HPQKTVee\"QV.GQ^O>0d<gG" +
		"V0 kCCmm]B|SNlm>`cmeQQl llhlkPm%OEI$=<VUKTVN^ OT+&<\"O>Ib<gG90OkCCmmTBVSNlm>`cmeQQl lllllPm5 E1 \"#8UOj^Ga;OT@! WW$#eC" +
		"Pe+0[kCCmm]BVSNlm>`cmeQQl llkllTm5EE]/0(I1eT$/!=!2 #$PR$;4<j6.0OkCYmm]`VSmlmF`cmeQYl l[HllPm5LE]/X=]:-TV`0[#T:G'=O>H" +
		"b<g_40OkCCmm]BVSNlm>`cmeQQl lheikPm5OBY-=VGUKT\\`^^OTSGQ\\O>Ig<XN40OkCCmm]BVSNlm>`cmeQQl lllllPmk fN\"=\"&U\";D$[G%T3OQN(" +
		"AO*\"$lB0OkSCmm]eVSVlm>`cmhQml ljUilPm5$E7<=VGXBTV`BKOTSGQNO2:I<gd48OkCCmm]BVSNlm>`cmeQQl lgEllPm5,EI/CH\"#X! ['*!\"f.H" +
		"aO#LE<Zl/0;kCCmm]BVrNlm>`cmeQQl i`ekkPm5UEN/C\\>UKTK8bkOW^GQN^B2b<gY4<OkCCmm]BVSNlm>`cmeQQl lllllPm=&E[/=5#6JT!`$F41S" +
		"ZQYO<3I<Hi20UkKCmmXBVSLlm>`cmeQQl lllllPmeejk2XON0kX 5 l'9khTmlR1lcc 3hQlMYmm]NVhelmG`cleNQl lkkllPm^&E4\"C&GUl)V`fMO" +
		"TSGQN4c/c<hJ\"0 kCCmm]BVSNlm>`cmeQQl ck`llPm5OEI/=GXWK[Vj_MOUS,QNO:Mb<gg4 OkCCmm]BVSNlm>`cmeQQl SUEllPme0E=/*6Z\"K=#84" +
		"\")#$GSDZF!^<GI)0*kCCmm]BVSNlm>`cmeQQl OPWllPm5TEI/=XGUKTV`^4OTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl KPEllPm5gEI/=XGjhTk" +
		"kkMkXSGQNO>Lg<gW40OkJCmm]BVSNlmA`cmeQQl kkElkPm5OEIl=UGjiTHf[MiT^GQNO>]b<gM40OkCCmm]fVSNlm>`cmeQQl >PEikPm5OEI/=UGUK" +
		"TV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl >PEikPm5OEI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl >PMllPmGOEI/=UG" +
		"hRTkel`j\\SGdNV>Ib<iG40OkCMmmcBVSNlm>`cmeQQl >PEllPm`iEI/=jNllTlllil_eGQZO>Ij<gR40OkClmm]GVSNlmG`cmeQQl >PElkPm5dEI/=" +
		"UGaKTl`lMOTSGQNO>Ib<gG40OkCCmm]B`SNlmD`cmeQQl >ZEllPm5\\EI>=a\\kKZ`flflTSGQTOHIb<gN40OkCMmm]BVVNlml`cmeQQl >PEllPmD]EI" +
		"/=UGjgTlhbRkTSGQNO>Ib<hG40OkCCmm]BVSXlm>`cmeQQl >PEllPm5OEI/=UGkKTkil`kTSGQNO>Id<gG40OkCCmm]BVSolm>`cmeQQl >PEikPm5O" +
		"EI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl llSlkPm5OEIj=dGibT]jOM\\TfGQNO>Ib<g[40OkUCmm]eZTNlmR`mmeQfl >PElkPm" +
		"5OEI/=UGUKTV`dMOTSGQNO>Ib<gG40OkCCmm]BVSNlm>KcmeQQl >PEllPm5gEI/=UGfKT_`gMOT\\GQNO>If<gG40OkCCmm]BVSVlmo`hmeQQl >]Wjl" +
		"Pm5OEI/=UGUZTV`^M\\T^GQNO>Ib<gf40OkCCmm]BVSNlm>`cmlKQl >jEllPm5\\EI/=UGhZTV`^MkTSGQNO>Ig<gG40OkCCmm]BVSNlm>`claVQl >PE" +
		"klPm5OEI/=XGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cllIQl >PVllPm5kEI/=YkkkTlhlhkT[GQ`O>Ik<gG40OkCCmm]BVSNlmF`cmeQWl >" +
		"PElkPm5OEI/=UGUKTV`^MOTVGQNO>Ib<gG40OkCCmm]BVSNlm>`gmeQQl llliPim^llafklkklaVlmlk]lla\\klql<lkllllCCmmmBVSNlm>npmeQQl" +
		" > \" A,!#\"+! ! /!3   \"#!!\"!,'75%6:I/!<!8<#D8',9'FF2!H(:*8%6Y (; !%0\".8#! &/=C A.,F\"\"3)D(#8&8C0+F/#8*)D+#Q$5\"!2#293J5" +
		"\"' -#  !\"4)!!#4$L;>%!58$6=!+&!GC#* $AF>&E1BED#N)\"0@:'0#(RS$$,.;SB&<%;P= B!>)@E)+-$M527#,<8=!7)   \"  E*)  ! !!$   8!0" +
		"\"; /BVA(4A9#<%<:/&223'T4G6<-A;bE0%$+=1?E3@(97NJ&/CB+6%N+->%!\";.)K/#I3#%+2\"$'/.H 3)#T-!G+8'P3$$+$ 5-#1,F;3$8(D#!$/!<." +
		"B'.;*%,<E\" ,)GG$5#\"! :#!4&+!)! $!G \"\" # %#5).1(\",5$,J,!.:#%B#\"!+.2F M;B;6EDI:-M= ,D3D/3/  .5B9&%6#&!-$D%F'7$$!/:'%!." +
		"#@0%F0='; 0/\"&B\"1-,%%:$# (8$@%F/>$,$/= &G9.(8$#W%#&)A*%!2)\"##!\" +-*#   4 O ! ;?C\"<)#=?[ K&7'G9=#?(<Q=U,>AK73()F1%*89" +
		"!*D332#\">B\"*2=>!23J#%'B$)2A)@I;\"@<#vF'!:;89!-92>Z/9#</NL)(!$$R(#$GO2K247KM]%J^12:.QRGFDI<Y/4M:C5\"/ #!/( !$&\"   / 4  " +
		" (5$$ '%0(4-%:6&&6!'6%9%($?!(2@ ,\"%!)!&.!+B !') !4'$!2./'\"'(\"/'!%/(##!3*)!&)5!'125)(:%!&!./.7;=-$%!'%! \"!/\",!'B!+$%(" +
		"\"-3!/2&#,!$@9,\"3!(%(8$ +:!'$%)AB1-!##,*('*\"/? G#\"2/\"(2\"',)!=\"$,0&6 2/8: A()  '& /\"0,!# !!2!\" '\"$&<\"<\"),'B>89#0<1B%*1" +
		"A 7+F\">C=0$-7':'3'?,*/%;(\"9/1:$5>56),') 3>',7:'.6\"3(7%. 0.B*E$\"4#!/,1)%8 $/%!(8-1(5!,-B/0*\")$!61 (%$ ',<3#!\"\"02\"2++-" +
		"\"8\"%?)0$\"% +\"3 !#$)#7;;)8$/'):(!=.!#0!&:\"\"#&3(7#A,$<37?A 2AA .?D!+412!>:<>A(.*$#2#A*A !$9!&=!#%+(-/ :$*1\" #*#&;''*8 " +
		"!!-  !#!7&)%*)<\")@!%B)(#9\"!8&2!&*%,'+( ,% '\"0\"D!!$ :#7 ! $ 0,$>\":%<\"D+D(> 8+8.'-7&+3#1,'+%(8!4'='*9 86 %9>(/ ('0% =4" +
		"+-74>.@$@B)\"5B9A$0\"@5A !-&=>@;@@@8B=@<51)$;,'0</! 7<:<0$@$(4+@4@=+<//)1>@'!\"\""
	claudeRuns = "" +
		"-----------------9@BH@ND9?991.2.-$3.4363242(658--------------------*+-----------,+,--...,,,,,,,,-----------------%%%" +
		"%%%%%%%%%%%%-&%--------------&),,,,,,,,,,,,,-)))))))))))))))-*((((((((((((((-$''''''''''''''-%(.............-'+-.---" +
		"---------!*-------------- 5,,,,,,,,,,,,,-!/------------------------------%*+++++-------0-!$,-----------0-$(,--------" +
		"-----!9--------------///////////////-$---------------'(++++,,,,,,,,4-$+-------------,*//////////////-***************" +
		"-)-----,,,,,,,,,,8\".1.//////////-%1*1*0-........+%%%%%%%%%%%%%%%- .--------------&&,,,,,,,,,,,,,-(++++++++++++++-%&&" +
		"&&&&&&&&&&&&-#.,-------------...............2272222222222222-)))))))))))))))--------------------------------43521574" +
		"32456323..)0,/*-*+)&.&')0000/..600000000304332232444:2229475885694566666:999::::::::::::----------------994222222222" +
		"222295\"0000000000000AA@@@@@@@@@@@@@@-----------------,----+**,,,+,**74;0605555555555563/,.,)33333333----------------" +
		"----------------4(3::<CDI=D5YWL>81?;=;A@G>FIUFaE4(/240031:75<@8)"
	claude47Pairs = "" +
		">ekkkpmkkkjkkkkkkkkkkkkqkkkqpkqk<kkkjkkFkmm]BV\\glmG`cmhQTl >PkkkPm`k_fZZkkkkkkkkkkpkki[bhpk<kk[kjkPhmm]BVzNlmG`cmjLR" +
		"l kk1kkPmLk\\^kkkkkjkkkkkkqkjkRhYqkpkkX]koJKmm]BVsNmmC`cmhQUl    i2Pm        #  9 [  '   !   +%     H\" mm<\"3?5nm%f]lk" +
		"pBl kkk\"dMmkjkk^hgkkkiVkkkkTkdjNmkIi<kkkkkprLmmok[[enmClgmkSdl kk[k\\Tm5keP/cZQaaTVjckOTkGQNOKIb<kOk0kkCCmm]BVSNlm>`c" +
		"meQQl >PEikPm5OEI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl kaEkkPm$'EI/=@PKKTV!*9OTZ `\\O Tb<g^404kCCmm]BVSNlm>" +
		"`cmeQQl kkkkkPm5!\"% %AO!OC +(\" 1,X\"$E?&\"!=O[0&lCCmm]dZS^lm>``meQal kkkkkPm&E Q/=DGUKTVOV/KTSGQNO>Ib<gM40OkCCmm]BVSNl" +
		"m>`cmeQQl kkekkPm5$KI-=I*USTV`/aOTSGQN^>Rb<JG!0SkCCmm]BVSNlm>`cmeQQl kkikkPm5R_IE=X(DKTV8-MOTVGQNOOIbCgS40\\kCCmm]BVS" +
		"Nlm>`cmeQQl kj`kkPm5O1I/!\\QUNTV`^MOTSDQNO>Ib`hW40OkCCmm]BVSNlm>`cmeQQl PkjkkPmH27? E%>!MN #$$!%&EB0)-\"\"3)HG*]\\VTmm]d" +
		"VSNlmR`cmePQl kkkkkPm!  7!! 6  WV-^G:M4GI1O #cb&&!8OcOcmmifZZhnmG`cmhLql iPYkkPm=KBI2C1\"$4? )!2 !3`D4O$1#8g1@.7kC\\mm" +
		"]BVumlmD`cliQQl kkikkPm5EEV/=SW.#Y $ # Xi?SNO[O*<Zi40kkShmm]fVSelmG`cmhQ]l kkkkkPm5BEg>J69;K.XkjYS&S7UNO<<B<gi=0OkCC" +
		"mm]BVSNlm>`cmeQQl kkkkkPm5!EN%=EM@KTVXHMKTfGQNOS?c<iag0OkCCmm]BVSNlm>`cmeQQl kkkkkPm5OEN[=D:Z^i> ^+T\\h.&N_.Aj<hj/eSk" +
		"JCmmafVYgnmF`cmeQzl kkkkkPm5(hX3G4\\$\"i\"F  :T#GQSRB-O< f40akCUmm]e\\S[lm>`cmiNXl kkkkkqm5+!U!a+MD!&H.! O\\_A 'T`4ks,j 0" +
		"O_CCmmkcV[Umm>`cmeQll kkkkkPm5! d =1MQ+OHd, F^/&Q]O;(.Gg'!0OkCCmm]BVSNlmL`cmeQQl jjekkPm53EI/3HPQKTVee\"QV.GQ]O>0d<gG" +
		"V0 kCCmm]B|SNlm>`cmeQQl kkhkkPm%OEI$=<VUKTVN^ OT,&<\"O>Ib<gG90OkCCmmUBVSNlm>`cmeQQl kkkkkPm5 E1 \"#8UOi^Ga;OT@! WX$#eC" +
		"Pe+0ZkCCmm]BVSNlm>`cmeQQl kkkkkTm5DE\\/0(I1dT$/!<!3 #$PR$;4<i6.0OkCYmm]_VSmlmF`cleQZl k[HkkPm5LE]/X=\\:-TV`0[#T:G'=O>H" +
		"b<g^40OkCCmm]BVSNlm>`cmeQQl khdikPm5OBX-=VGUKT\\`^^OTSGQ\\O>Ig<XN40OkCCmm]BVSNlm>`cmeQQl kkkkkPmj fN\"=\"%U\";D$[G%T3OQN(" +
		"AN*\"$kA0OkSCmm]eVSUlm>`cmhQol kjUikPm5$E7<=VGXBTV`AKOTSGQNO2:I<gd48OkCCmm]BVSNlm>`cmeQQl kfEkkPm5,EI/CH\"#X! ['*!\"e.H" +
		"`O#KE<Zk/0;lCCmm]BVrNmm>`cmeQQl i`ekkPm5TEN/C[>UKTK8bjOW]GQN_B2b<gX4<OkCCmm]BVSNlm>`cmeQQl kkkkkPm=&E[/=5#6JT!`$F41S" +
		"ZQYO<3I<Gh20UkJCmmYBVSLlm>`cmeQQl kkkkkPmedjk1XNN0jX 5 k'9jgTlpR1kcc 3hQmLYmm]MVgdlmF`cleNSl kkkkkPm^&E4\"C&GUk)V`fMO" +
		"TSGQN4c/c<hJ\"0 kCCmm]BVSNlm>`cmeQQl bj`kkPm5OEI/=GXWK[Vi_MOVS,QNO:Mb<gg4 OkCCmm]BVSNlm>`cmeQQl SUEkkPmd0E=/*6Z\"K=#84" +
		"\")#$GSD[F!]<GI)0*kCCmm]BVSNlm>`cmeQQl OPWkkPm5TEI/=XGUKTV`^4OTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl JPEkkPm5gEI/=XGigTj" +
		"kkMjXSGQNO>Lg<gW40OkJCmm]BVSNlmA`cmeQQl jjEkkPm5OEIk=UGjhTGf[MiT^GQNO>\\b<gM40OkCCmm]eVSNlm>`cmeQQl >PEikPm5OEI/=UGUK" +
		"TV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl >PEikPm5OEI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl >PMkkPmGOEI/=UG" +
		"hRTjek`j]SGdNW>Ib<iG40OkCMmmcBVSNlm>`cmeQQl >PEkkPm`hEI/=jNkkTkkkhk`eGQZO>Ij<gR40OkCkmm]GVSNlmG`cmeQQl >PEkkPm5dEI/=" +
		"UGaKTk`kMOTSGQNO>Ib<gG40OkCCmm]B_SNlmD`cmeQQl >ZEkkPm5\\EI>=a[kKZ`fkfkTSGQTOHIb<gN40OkCMmm]BVWNlml`cmeQQl >PEkkPmD]EI" +
		"/=UGjgTkhbRkTSGQNO>Ib<hG40OkCCmm]BVSXlm>`cmeQQl >PEkkPm5OEI/=UGjKTkik_kTSGQNO>Id<gG40OkCCmm]BVSnlm>`cmeQQl >PEikPm5O" +
		"EI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl kkSkkPm5OEIi=dGibT]jOM\\TfGQNO>Ib<g[40OkTCmm]eZSNmmR`omeQgl >PEkkPm" +
		"5OEI/=UGUKTV`cMOTSGQNO>Ib<gG40OkCCmm]BVSNlm>KcmeQQl >PEkkPm5fEI/=UGfKT_`gMOT\\GQNO>If<gG40OkCCmm]BVSUlmn`gmeQQk >]Wjk" +
		"Pm5OEI/=UGUZTV`^M\\T^GQNO>Ib<ge40OkCCmm]BVSNlm>`clkJQl >iEkkPm5\\EI/=UGhZTV`^MkTSGQNO>If<gG40OkCCmm]BVSNlm>`ckcVQl >PE" +
		"kkPm5OEI/=XGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`ckkIQl >PUkkPm5jEI/=YjkkTkhkgkTZGQ`O>Ij<gG40OkCCmm]BVSNlmE`cmeQVl >" +
		"PEkkPm5OEI/=UGUKTV`^MOTVGQNO>Ib<gG40OkCCmm]BVSNlm>`imeQQk kkkiPhm^kkafjkkjkaVkmkj^kk`\\pkqk<kjkkkqCCmmnBVSNlm>nqmeQQl" +
		" E')'H3(*)2('('6(:''')*(()(3.><,=AQ6(B(?C*K?.3@.MM:(O.A1?,=_'/B'(,7)5?*('-6DJ'H53L)):0K/*?->J72M6*?10J2*X+;)(9*9@:Q<" +
		").'4*('();0((*;+RBD,(<?+=D(2-(MI*1'+HME-L8IKK*U0)7G@.7*0YZ++35BZI-C,BWC'I(E0FL024+T<9>*3C?D(>0''')''L10''('((+(''?(7" +
		")B'6I\\H/;H@+C,CA6-99:.Z;M=C4HBhL7,+2D8FL9F/?>UQ-6JI2=,T24E,()B50R6*O:*,29)+.65O':0*Z4(N2?.V:++2+'<4*83MA:+?/K*(+6(C5" +
		"I.4B1,2CL)'30NN+<*)('A*(;-2(0('+(N'))'*',*<058/)2<+3P2(4A*,I*)(259M'TBHB=LKPA4TD'3J:K5:6''5<I?-,=*-(4+J,M.>++(6A.,(5" +
		"+G7,M7D.B'76)-I)843,,A+*'/?+F,M6E+3+6C'-N@5/?+*^,*-0H1,(90)**()'231*''':'V'('BFJ)C0*DEb'R->.M@D*F/CXD\\3EHR>:/0M8,1?@" +
		"(1K::9*)EI)19DE(9:Q*,.I+09H0GPC)GC*|M.(AB?@(4@9E`6@*B6US0/(++Y/*+MU9R9;>RSd,Qe88A5WXNMKPC`6;TAI<)/ #!0) !$&\"   / 4  " +
		" (5$$ '%1(4-%:6&&6!'6%9%($?!(2@ ,\"%!*!&.!+B !') !4'$!2./'\"'(\"/'!%/(##!3*)!&)5!'125)(:%!&!./.7;=-$%!'%! \"!/\",!'C!+$&(" +
		"\"-3!/2&#, $@:,\"3!(%(8$ +;!'$%)AB1-!##,*('*\"/? H#\"20\"(2\"',)!=\"$,0&7 2/8: A()  '& /\"0,!# !!2!\" '\"$&<\"<\"),&C>89#0<1B%*1" +
		"A 7+F\">D=0$-7':'3'?,*/%;(\"9/1:$5>56),') 3>(,7:'.6\"3(7%. 0.B*F$\"4#!/,1)%8 $/%!(8-1(5!,-B/0*\")$!61 (%$ ',<3#!\"\"02\"2,+-" +
		"\"8\"%?)0%\"% *\"2 !#$)#7;;)8$/'):(!=.!#0!&;\"\"#&3(7#A,$<48?A 2AA /?D!+412!>:<>A(.*$#2#A*A !$9!&=!#%+(-/ :$*1\" #*#&;''*8 " +
		"!!-  !#!7&)%*)<\")@!%B)(#9\"!8&2!&+%,'+( ,% '\"0\"D!!$ :#7 ! $ 0-$>\"9%<\"E+E(> 8+8.'-7&+3#1,'+%)8!5'='*9 96 %:>(/ ('0% =4" +
		"+-74>.@$AC)\"6B8A$0\"@5A !-&=>@;@@@8C=@<52)$;,'0</! 6=:=0$@$)4+@4@=+<//)1>@'!\"\""
	claude47Runs = "" +
		"-----------------8@BH@ND9?991-2.-$3.4363241(658--------------------*+-----------,+,--.-.,,,,,,,,-----------------$%%" +
		"%%%%%%%%%%%%-&%--------------&),,,,,,,,,,,,,-)))))))))))))))-*((((((((((((((-$''''''''''''''-%(.............-'+-.--," +
		",,,,,,,,-!*-------------- 5+++++++,,,,,,-!.------------------------------%)+++++,,-----0-!$+-----------0-$(,--------" +
		"-----!9-------------,/..............-#---------------'(++++,,,,,,,,4-$*-------------,*//////////////,***************" +
		"-)-----+,,,,,,,,,8\".1.//////////-%1)1)0-........+%%%%%%%%%%%%%%%- .--------------&&,,,,,,,,,,,,,-(++++++++++++++-%&&" +
		"&&&&&&&&&&&&-#.,------------,...............2262222222222222-(((((((((((((((--------------------------------32521574" +
		"32456323..)0,.*-*+)&.&')0000/..6////0000303322232344:2229474785584555555999999:::::::9::----------------993222222222" +
		"222295\"0000000000000@A@@@@@@@@@@@@@@-----------------,,,-,+*),,,+,**74;0605555555555463/,.,)33333333----------------" +
		"----------------3(3::<CDI=D4XWK>81>;<;A@F>FHTE`E3(/24/031975;?8)"
)
