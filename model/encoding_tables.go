package model

// What a step from one character to the next begins of tokens (Pairs), and by what that
// is multiplied with how far in the run it is (Runs); see scan. The numbers were fitted
// by a program to what real tokenizers do with some four megabytes of texts, and are not
// to be edited by hand: docs/limits.md says which texts and tokenizers.
const (
	o200kPairs = "" +
		"3oGoonmioomio\\oooooooooooooonooo8oooiok:imm;,FM]8Bi\\Sondi~ 3LGooam_oaeYZcooooooooononl^ckno8ooaimkNgmm;,F[+BBiNSonei" +
		"h oo+ooamKof^inononoooooooonnWgZoouooX]omKPmm;,FT+IBbXSm_jhh   Gm am        #  *    &   !   &%     =! mm  #     EA6." +
		";\"d ooGo omimoo`jinnolVoo[nTognTnoJk8nooiontSmmiiniiioaL]nooit $DBn*Qm5ogG1dSQbeUVlcoQToHOTTKJa8nOn.ok8Fmm;,F0+8BLNS" +
		"kRXDh 3L5m6am5PE>1<LFWNUV_]KQTRHOTT>Ja8gG3.Mk8Fmm;,F0+8BLNSkRXDh ob5n!am$+E>1<CPGNUV!08QTZ a_T Ua8g`3.dk8Fmm;,F0+8BL" +
		"NSkRXDh nnGo amZ&!\" %TR!Z= (&\" /*] aE0& !>4'.(k8Fmm;ffMI8RLNTGRllh koGo#am'P B=<NFWNUVcNjMTRHOTT>Ja8gN3.Mk8Fmm;,F0+8" +
		"BLNSkRXDh lnEo+am5lK>7<Z*WVUV_eDQTRHOT`>Sa8KG!.Rk8Fmm;,F0+8BLNSkRXDh mmGo!am5S9>8<E$ENZV82KQTKHOTT3Jc6gT3.ak8Fmm;,F0" +
		"+8BLNSkRXDh SfCo%am5T,>1!Y<WPUV_]KQTREOTT>Ja_UM3.Mk8Fmm;,F0+8BLNSkRXDh =nGo!amH27;-B:A\"OL ,%#$'%F+5+2$#:-f$G8aOUmm;<" +
		"FR+8B^NSkRZDh PPGn am  G/!! 4  OV*a&;M=HHRT &b)$  7M][)mmhifiihl(NSkV`jh WLAo am#QB>LAT!\",@ (\"2  Ab@>T04%@g=&-0k8]mm" +
		";,F&e8BONS?gk@h ooGo am0jEN1<e]?\"Z mk#oXV@KTTjSn8Zm3.okggmm;iF0f8KiNSonokh O_Go!am5HEhRI<B?N'QobOU&R8TTTB<48gl=.Mk8F" +
		"mm;,FB+8BLNSkRXDh PdGo am5%ED\"<F>HNU^WHKMT/HOTTU3c8I]/.Mk8Fmm;,F0+8BLNSkRXDh .EGo/am5EE:c<Q:R`n>\">hVC]/ T`.Am8Mn/`Rk" +
		"0FmmT4FY6\\RfNSkRXdh $%Go am5,#2<EH*#)l\"F  ;T$HOXWM,V8!T,.bk8Wmm;)q0SB/LNSkchWh IBGo'nm50!$!C2LA2>FJ! Q\\cB +Xc@nH'n ." +
		"MU8Fmm[eFP9YBLNSkZbfh XaGo am5! ( <ELR?PWf* !^. U<T (<Dg&!.Mk8Fmm;,F0+8BSNSkRXDh \\mEo am5-E>1%f=ENUVe<\"SL)HO`T>?d8gG" +
		"V. k8Fmm;,f0+8BLNSkRXDh ggFo3am PE>3<cMWNUVP] _T*\";\"T>Ja8gG8.MkVFmm_,F0+8KLNSkRXDh L9Go:am5 E-\"\"\";WRl_Gb;QTD! XH##d@" +
		"_>$.Zk8Fmm;,F0+8BLNSkRXDh ieGo cm5GE\"1$9'5gU$/#>&2 #EVW\";U8iE..Mk8Zmm;_F0i8BgNSmZmah hY7o!am5PEC1XOJ9dUV_$[!T:H'AT>H" +
		"f8gZ3.Mk8Fmm;,F>+8BLNSkRXDh cjEm6am5^HR7<aFWNU\\_]^QTRHO_T>Jg8XO3.Mk8Fmm;,F0+8BLNSkRXDh _mGn'ami!lD\"<!.Wj\\C*IF$TnPOTf" +
		"I]!($#d.MkCFmm;hF09IBLNSkZpeh Ul>m!am5&E4=<:FYTUV_CAQTRHOTTQ<f8gf37Mk8Fmm;,F0+8BLNSkRXDh lh5o am58E>19V\"&5\" a,)! #/A" +
		"7T!M@8^n@.Mk8Fmm;,FR+OBLNSkRXDh keEn6am5UED1BV;WNUZ5bmQW^HOTa;2a8g\\3;Mk8Fmm;,F0+8BLNSkRXDh '$Go#am=\\E01<R'FMU _#><1R" +
		"\\O]T;3j84k2.TkLFmmO,F>98B[NSkRXDh ooGo amd0m)(FONEnZ o$*\\9NkSkoX_$gi7EgPlQZmm;AFGaBBgNSon^ih ncGo amb'E+!A<QWolV_cKQ" +
		"TRHOT7dIb8hJ\".#k8Fmm;,F0+8BLNSkRXDh fnCo am5PE>1<@XXN]Vk^KQVR-OTTDNa8gi3 Mk8Fmm;,F0+8BLNSkRXDh GR5o amc*E@1*QK(N=#86" +
		" +#!HKHCE!f8G#4.=k8Fmm;,F0+8BLNSkRXDh NLBo^am5TE>1<RFWNUV_]5QTRHOTT>Ja8gG3.Mk8Fmm;,F0+8B^NSkRXDh 0l5omam5iE>1<QFmjUn" +
		"nnKnXRHOTT>Mh8gX3.Mk,Fmm;,F0+8BSNSkRXDh nkAo/am5PE>i<LF\\kU\"g-KOT_HOTT>]a8gN3.Mk8$mm;iF>+8BLVSkRXDh 3L5m6am5PE>1<LFWN" +
		"UV_]KQTRHOTT>Ja8gG3.Mk8Fmm;,F0+8BLNSkRXDh 3L5m6am5PE>1<LFWNUV_]KQTRHOTT>Ja8gG3.Mk8Fmm;,F0+8BLNSkRXDh 3L:ooamGPE>1<LF" +
		"jTUmfo`m\\RHeTZ>Ja8jG3.Mk8Omm@,F0+8BLNSkRXDh 3L5ooam_kE>1<lMnoUoooko`fHO]T>Jl8gS3.Mk8imm;-F0+8BiNSkRXDh 3L5o6am5eE>1<" +
		"LFcNUn_oKQTRHOTT>Ja8gG3.Mk8Fmm;,X0+8B^NSkRXDh 3X5ooam5]E>@<_\\nN\\agohoTRHOYTHJa8gO3.Mk8Omm;,F1+8BhNSkRXDh 3L5o%amC`E>" +
		"1<LFmiUoicPnTRHOTT>Ja8hG3.Mk8Fmm;,F0-8BLNSkRXDh 3L5ooam5PE>1<LFmNUnmo_nTRHOTT>Je8gG3.Mk8Fmm;,F0i9BLNSkRXDh 3L5onam5Z" +
		"E>?<LFhTUgdoKm\\RHUYT>Ja8gG3.Mk8Fmm;,F0+8ALNSkRXDh Wo=o6am5PE>i<cFIdU!A-K?TiHOTT>Ja8jb3.MlbFmm;Yf'+BBhN_$Rffh 3O5o@am" +
		"5PE>1<LFWNUW_dKQTRHOTT>Ja8gG3.Mk8imm?,F0+8BL@[mRXD~ 3L5onam5hE>1<LFjNU`_hKQTcHOTT>Ji8gG3.Mk8Fmm;,F098Biz`nRXDb joAn " +
		"am5bE>1<LMWnUV_`K^T_HOTTEJi8go3?Mk8Fmm;,F0+8B6qe=[UDh <mBodam5`E>1<LFamUV_`XnTZHOTTLJj8gn3.Mk8Fmm;,F0+8BRNSoLpDh 3R5" +
		"ooam5mE>1<QFWoUV_db`TmHOTTkJn8gM3.Mk8Fmm;,F0+8BiNXomXDh 3L?omam5nE>1<RnnnUoioinT[HObT>Jm8gG3.Mk8Fmm;,F0+8BcNSkRXTh 3" +
		"L5oAam5PE>1<LFWNUV_]KQTVHOTT>Ja8gG3.Mk8Fmm;,F0+8BLbWkRXDn ooom!Ym]oo]gmonmocVonon^ooa_nnoo8nnoioo8FmmX,FB+8KLm~kRjDh" +
		" &   >! !!!    0 (   ! \"!!!-(=6#C?T-\"=\"ZG$XS&9:)\\L; L)808!:g ') !D4$7A\"% $6KQ\"-1/B!\"/(I)<?&=H)0P*%=),N1#H%&) /$%2-9'" +
		"!\" 4,\"  !/$& %.#@92%!6F$DD$,M\"8N%, (6`;!E2CMY#R%\"1//$7'+\\Y&&)+>GF=G'>[J!M!S)J.-B+#O2.< %M733-%   !  %.!      $   = :" +
		"\"/ ,N_;#6F<%M\"2F:*I;I &.3JC3H.$K/#**B+H'6H)3RJ@'&-S5@-C*-C\"!\"*))C4!G<#,+B%\"'39P O*![)\"T';.U>%--%&=9\"/2YJ/,8,J# \", C0" +
		"0'/D$&/GQ!!*8:K$2%\"! ;\" %$#    )!E  \" \" ( ,$24*\"/2\"+L/\")2\"#>#! (81,-`,D8NEVQK1WT!)R1G3/3, Y<OAU(;#$!4\"8(@&;%#\"8*%#!+" +
		"#,6%J/R*=%65\"']&246'(&\"! +?%F/;0H'+#0B %B/3';#\"\\##\"'=0%#/#\"\" ! !+$'!   0!M   -6.#7%#I;\\ [#N&UJD%H(>L7Y6@dML68(SS-#CE" +
		"#*MQB9%#ZN&-6MJ 82e%:0<*+]A-[[C#H='lX:%>RX1\"4>R6!2c'<.YH'&!$#[1\"$TWF_<33bLQ%S[7&J.C\\-L[ZQb$+G>O'%3 #!/( *#-\"   2 '  " +
		" 0 %  ($#*6)'18,68!+5'C\"-)>\"1!+!,#(#'$', )2 #/;,!4)*!3*22\".'$/'!$$(##!)#)#.5+#%21.*(9'\"(!+'\":>A2$\" .%( #!2*/!%*!!\"&," +
		"\" 4\"=-&2,!/@5% 3!( (9/&1?!.8&0C2&-!,;A(*,975@-H#+%1\"03\"(62!77&&9() </,\"'*%&! !  )%0#   ! 5 ! &!% = .\"$,!7597#1!9<%3D" +
		"( 8,7!>D>3$9<(<'4(B\"*0%+):;02;%-?67,0(( +6,#C<+,?#6?8#+!7+B(F')2\"#1,3-&A '0&%-1%522-\"#C05+\"&$ -42+%&.+/=:#\"\"#.,!+&&-" +
		" :#!?/)#&  +!4 \"\"## '9;)1%/.///!5& \"(%&%$\"$(788)A.%*=B@BC7CB /@E9!.3/!2H=@B'2%(#4(?*9\"\"%&!):\"%!')/# A#-&\" (6$,=)($4!" +
		"*\":# %2!02)%3,:$(F!+.++\":\"!:\"2!'+1/&0) +\" ( 9\"2!   A#7   $'- %8*<!<$H F&? 0'.!%C*&\"4)2-;A#)3!<.7'*9-<4+%1? 3 0/ *-?6" +
		"3:3/5D@'AD(\"=>'B$7+A8A !5&=0A<A7ABC5,>'.$%;%2?=1:!8@==8#A$0:AAD35+==0,2,A'&\"!"
	o200kRuns = "" +
		"-----------------9A@E@F>7@;5312/:  ~  ~  ~!!~$$~-----------------!3----------------..///------------------------.%&&" +
		"&&&&&&&&&&&&-(&--------------%(,-----------/-,,,,,,,,,,,,,,,.+'(((((((((((((-%((((((((((((((-&/--------------&,./..-" +
		"---------!)-............- ,,,,,,6,,,,,,*-!,--------------0..............-!?'-''(0++++++9-!%,--........./-\"-+--------" +
		"-----$'---------------//////////////-$..............-%'++++,6,,--/-5-/(.............-+00000000000000-,,,,,,,,,,,,,,," +
		"-/)0)0,-,,,,,,,,-8#-0.//////////-&/-/-,/........+&&&&&&&&&&&&&&&- +.............- 9--------------(,,,,,,,,,,,,,,.%&&" +
		"&&&&&&&&&&&&-%2,-------------///////////////,';,,,,,,,,,,,,,.$**************--------------------------------.'+*.)(1" +
		"%%%&$&&$.(&-,/0/0,&%)$#%,#)'%%%##$)$&&&&.$*1./.(((,*1)++.\"&**2'-)'''''''.)+.,/,-*)&'%%'(-'+/,,--'.((&-'+.+,*********" +
		"****9?!2222222222222=;;AAAAA;;;;;;;;-$+.............-+,-.--*+-+-.,/--,/,---.-.---.--.(.'''(%))))))))/-,,,,,,,,,,,,,," +
		"-----------------!&+/018=/,41.0N2-55140;>4D7;>Y>--226000.4..0).;"
	cl100kPairs = "" +
		"3hGoonmioomioooooooooooooooonooo6oooiokEimmD:YjgVYGh^ooUT~ 3KGooam_oadYZoooooooooononlZbkno6ooailkYgmmD:YdJ\\YGT^odTR" +
		"i oo+ooamKof]inonomoooooooonnRgZoouooX]omPQmmD:YaJ`YEc^m]]Ri   Gm am        #  *    &   !   &$     =\" mm(!7%2GT$?JML" +
		"H3d ooGo omimoo`jjnnolVooonTognNmoIk6nooionqTmmoa[jemYEeina]bt #>Bn)Qm5ogE/d[PbcVVlcoPToHONRKIa6nOn.okDGmmD:YTJVY=T^" +
		"kYWJi 3K5m4am5OE</<VFWIVV_]LPTQHONR>Ia6gG3.EkDGmmD:YTJVY=T^kYWJi ob5n!am*+E</<@JLIVV!09PTY `[R =a6g`3.bkDGmmD:YTJVY=" +
		"T^kYWJi nnGo amZ%!\" %T7!ZD ((\" 1)] \"E0&!!>4(.&kDGmmD^Z_\\VY=T\\nY\\`i koGo#am'P @=<IFWIVVcNjLTQHONR>Ia6gN3.EkDGmmD:YTJV" +
		"Y=T^kYWJi lnEo*am5lK<6<_'WSVV_eEPTQHON_>Ya6KG!.KkDGmmD:YTJVY=T^kYWJi mkGo!am5S9<8<N$EIZV8HLPTJHONR3Ic4gT3.`kDGmmD:YT" +
		"JVY=T^kYWJi SgCo%am5T,</!Q<WLVV_]LPTQEONR>Ia_UM3.EkDGmmD:YTJVY=T^kYWJi DnGo!amH274\"B;:\"OL .##%'%F'3+2\"#9*f%)8[OUmmDv" +
		"Y`JVYXT^kYVJi PPGn am  G/ ! 0  OV*a7;M=HHOR %b($\" 6E]ZcmmM`Zkin`GT^kZUri WKAo am#NB<LAP!\"*? (\"2  Ab@:R'4%>g:&-0kD]mm" +
		"D:YbmVYCT^i_YRi ooGo am0jEL/<XZ>\"[ mk!,XV@KNRgRn6Zm3.$kagmmD`YTcVYGT^ocZ\\i HXGo!am5HE\"5I?9>I'QobOU&Q8TNRB<46gl<.EkDG" +
		"mmD:YZJVY=T^kYWJi NaGo am5!EB\"<C>GIV^W3LLT/HONRU4c6I]+.EkDGmmD:YTJVY=T^kYWJi .JGo!am5EE8c<@:R`n>\">hUC]. N_.Am6Mn/dKk" +
		"7GmmM`YkgnYGT^kYWai $$Go am5+#1<E5)6)l\"F  ?T$HOSUM)W6 U,._kDWmmD_[T\\\\z=T^l]aNi FAGo'nm5/!$!C0L@ >F(\" P\\cB *Vc?n5'n ." +
		"EUDGmmR]Y_RcY=T^ke\\li OaGo am5! ( <ALR?PVf* D^. G9R ':Bg&!.EkDGmmD:YTJVYKT^kYWJi \\mEo am5-E</%X=EIVVe<\"SL)HO]R>?d6gG" +
		"V. kDGmmD:|TJVY=T^kYWJi ghFo2am OE<3<fMWIVVP] _T*\";!R>Ia6gG8.EkXGmmG:YTJVY=T^kYWJi I8Go7am5 E-\"\"\";WMl_Gb;PTD! VG##d>" +
		"P>$.UkDGmmD:YTJVY=T^kYWJi gcGo cm5GE\"/$;'5gV$/!>&2 #EPU\":U6iE..EkDZmmDZYTnVYIT^m[YYi gX7o!am5PEB/XTJ9cVV_$[!T:H'=R>G" +
		"f6gZ3.EkDGmmD:YYJVY=T^kYWJi diEm4am5?HP6<dFWIV\\_]^PTQHO[R>Ig6XO3.EkDGmmD:YTJVY=T^kYWJi _mGn'ami!g8\"<\"&Wj\\C!IG$T7PON)" +
		"ID!($#A.EkKGmmD_YTR`Y=T^k[oii Ul>m!am5&E3<<8FZPVV_BBPTQHONRQ;f6gf36EkDGmmD:YTJVY=T^kYWJi hg5o!am54E</9X!&+\" a**! #/7" +
		"5R!MB6kn@.MkDGmmD:Y`JcY=T^kYWJi jeEn4am5UEB/B];WIVZ5bmPW]HON_;2a6g\\3:EkDGmmD:YTJVY=T^kYWJi '$Go#am=gE//<P&DIV _#><1Q" +
		"[OYR;3j64k1.NkQGmmE:YYJVYCT^kYWJi ooGo amd0m)(FONDnZ m$*\\9NhSjoW:$gi7EgHlTZmmDGY\\i\\YGT^oaVSi ncGo amb&E*!A9FW lV_cLP" +
		"TQHON6dIb6hJ\".#kDGmmD:YTJVY=T^kYWJi fnCo am5OE</<GWYI]Vc^LPVQ-ONR:Na6gi3 EkDGmmD:YTJVY=T^lYWJi GQ5o amc*E?/*QK'Ia!7/" +
		" +#!HKDBF\"f6G#4.5kDGmmD:YTJVY=T^kYWJi OKBo^am5TE</<YFWIVV_]5PTQHONR>Ia6gG3.EkDGmmD:YTJVYDT^kYWJi ?l5omam5iE</<YFmjVn" +
		"nnLnXQHONR>Lh6gX3.EkMGmmD:YTJVY@T^kYWJi nkAoHam5OE<i<VFmjV5gfLlT^HONR>\\a6gN3.EkD$mmD`YYJVY=`^kYWJi 3K5m4am5OE</<VFWI" +
		"VV_]LPTQHONR>Ia6gG3.EkDGmmD:YTJVY=T^kYWJi 3K5m4am5OE</<VFWIVV_]LPTQHONR>Ia6gG3.EkDGmmD:YTJVY=T^kYWJi 3K:ooamGOE</<VF" +
		"jPVmfoam\\QHeNX>Ia6jG3.EkDPmmH:YTJVY=T^kYWJi 3K5ooam_kE</<lMnoVoooko`fHOYR>Il6gS3.EkDimmD>YTJVYGT^kYWJi 3K5o4am5eE</<" +
		"VFcIVn_oLPTQHONR>Ia6gG3.EkDGmmD:bTJVYDT^kYWJi 3W5ooam5]E<?<b\\nI\\`gohoTQHOTRHIa6gO3.EkDPmmD:Y]JVYIT^kYWJi 3K5ooamC`E<" +
		"/<VFmhVoicQnTQHONR>Ia6hG3.EkDGmmD:YTTVY=T^kYWJi 3K5ooam5OE</<VFmIVnmo_nTQHONR>Ie6gG3.EkDGmmD:YToXY=T^kYWJi 3K5onam5Z" +
		"E<?<VFhPVgdoLm\\QHUTR>Ia6gG3.EkDGmmD:YTJVY=T^kYWJi do=o4am5OE<i<fFkcV!m1L?TiHONR>Ia6jb3.ElfGmmDhZhJ]YJTl4YX_i 3N5o?am" +
		"5OE</<VFWIVW_dLPTQHONR>Ia6gG3.EkDimmD:YTJVY=;imYWJ~ 3K5ooam5hE</<VFjIV`_hLPTbHONR>Ii6gG3.EkDGmmD:YTRVYn~nnYWJd joAn " +
		"am5bE</<VMWnVV_`L^T_HONRlIi6go3?EkDGmmD:YTJVY,~lRb\\Ji =mBodam5_E</<VFamVV_`YnTYHONRLIj6gn3.EkDGmmD:YTJVY?T^oWgJi 3P5" +
		"ooam5mE</<YFWoVV_dc`TmHONRkIn6gM3.EkDGmmD:YTJVYGT]obWJi 3K?omam5nE</<ZnnnVoioinTZHO_R>Im6gG3.EkDGmmD:YTJVYFT^kYWTi 3" +
		"K5o?am5OE</<VFWIVV_]LPTUHONR>Ia6gG3.EkDGmmD:YTJVY=qikYWJn ooom!Ym]oo\\gmonmocVonon^ooa[nnoo6nnoiooDGmmF:YZJVf=mqkYjJi" +
		" 6!\" 7) \"\"$!   - 3   #! !\"!.)87&BDS/!I#CD&RP'6?-RX<!J)5-8&=] *; \"<D#7=%% '=HI\"11,D!$.(P-8>(>O-2W+%=.-Q/$M$,# 6#'25@3" +
		"#! 3'!  !9)$ $5#C63&!?`%SL#*T\"8I&.!(L[F#V5FPO%M*#3TA+8'+_W&%-/>XFBD(C\\Q\"NLD+IC.A1$R:3< .P8>0<$   \"  '/\"!   !!&   ; >" +
		"\"; /IYH%NW:(H#KE?.E89$^98MRNQ60E1%*+@1FU8I15:IZ)+.K<J#]+2G\"!\"I1)P4\"T:#+0;$#(25P .*$Z)\"T)B-WB%/6%&E6$48SE;)C,P# %, E," +
		"H(1?*&0CP! /2UQ&:##! F\"!3%'!   )!A \"\" $ &#:&56-$E@ *J1#+8)#<#\" .73,\"W@C@IDSS?5UN\")KNB252, 0&IPO)F#&!2\"N)E(?%#\"2F'#!." +
		"\"4:%K2M,?%36!(T%912))5\"! -=+C-:2F&)%1M &A>1)>%\"\\##$)O2##>* \"!!\" .'(%   0!U ! -61#=(%H7Z!P#G)NFN$>,=WG82@`HIDK*PB0&FD" +
		"!.HQA:##8I%19LP!.4]%<*I'+\\G,TUB#FF%kV6\"ENR0\"*CT+`6V(:2U`&'\"&#X4\"%PY@V72:WKZ'Md6*L@Y`:JRTT])1WIH(#1 # /( 1%%\"   / &  " +
		" --%  '$)#5((58)#6!\"5&A9,(;\"(2*!?#'#'#&% (@ #-8%\"<0)!1(11 ?($-&!$#)$#!)#)\"-@*(&50.)'@'\"%!*-#8;?1## )%! \"!/(.!(.!$\"#+" +
		"\" 2\";,%#+!,?3% 0>( '71 18!-#%/?A (!'9>()-6640,D\"#%/!01!'?-!53&%7\"( 8., % $&  !  +%/#   !!21! &!$ ; *\"$)'@=75#!;8@$1A" +
		"& 6@5#=A<1$7:'='9$>\"'/%:(9:00?$0>56(/-( *:<&@9&+1\"4>8\"(!8<@(3%&1!\".12*%> &/%%,7$311-\"#2-/'!## 70()%&%).<:\"!\"$0+!\"&-+" +
		" 9\"#>50#&  )#4 !\"#( &::)6%.,..* *# \"-%%:#\"\"(808&?,$)>>>@@?@@ .>B.!90-!>D;>@%-\"'#1$=)@\"\"&% '9 $!().- ?\")%! (5$+;('#5!" +
		"\"!7# %1!/$)&/*8#(B!$@!(!8\"!8#0!'*0+$/- '\" & ?!@!   ?#7   $&9 $>\"9%7#D B&> &&,$%@.%!;(@?:?#(.!:-5&)8#53&%A>!1 == %B=4" +
		"*95*3A>$?A!\"@@&@$.%?>? !>&<6?;?5??@<+<+.%$;%+=<09 69<<?$5?-@>>A?**;</@5>?,&\"!"
	cl100kRuns = "" +
		"-----------------<BCFBQF<@?623.0:  ~  ~  ~!!~$$~-----------------&-----------------..///------------------------.%%&" +
		"&&&&&&&&&&&&-'&--------------%(,-----------/----------------.+'(((((((((((((-%((((((((((((((-&/.............-$-./..-" +
		"---------!)-............- ,,,,,,6,,,,,,+-!,--------------0..............-!@'.'((+++++++;-!%,--........./-$(---------" +
		"-----!:---------------//////////////-$..............-&),,,,,,------9-/(.............-+00000000000000----------------" +
		"-/)0)0,-,,,,,,,,-9\".1.0000000000-&/-/-./........+&&&&&&&&&&&&&&&- +.............- 9--------------(,,,,,,,,,,,,,,.%&&" +
		"&&&&&&&&&&&&-#3,-------------000000000000000.-2..............$))))))))))))))--------------------------------::99999:" +
		"999798580/*1-0,0,,*(2&+*1221103609112222.-,/-,*,&*-/..--:7768956:6677777:=;788898:978989210/111111111111:96444444444" +
		"444434!-------------DCCEEEEECCCCCCCC-,)-------------0-000010//000/0/4343443443344443554.+-*)33333333/-,,,,,,,,,,,,,," +
		"----------------/#*0279:=368;J8D5/73344:@5ACE>YA/-002.0/.20196.."
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
		">gmmmmmmmmlmmmmmmmmmmmmmmmmmmmmm<mmmlmkEmmm]BV]ilmG`cmiQSl >PmmmPmam`gZ[mmmmmmmmmmmmmkZajlm<mm\\mlkOjmm]BV|NlmF`cmlMQ" +
		"l mm1mmPmLm]_mmmmmlmmmmmmmmlmRfYmmqmmY^mmJLmm]BVuNlmC`cmiQTl    i2Pm        #  9 \\  '   !   +%     G\" mm<\"4@6mm%f]mm" +
		"rAn mmm\"fKmllmm_jhmmmjVmmmmTmflNkmIj<lmmmmmpLmmmn\\]gmmClgmmTbl mm\\k\\Rm5mfP/dZRabTVkcmOTmGQNOKIb<mOm0mkCCmm]BVSNlm>`c" +
		"meQQl >PEikPm5OEI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl mbEmmPm$'EI/=@QKKTV!*9OTZ a[O Tb<g_404kCCmm]BVSNlm>" +
		"`cmeQQl mmmmmPm5!\"& %BP!PC +(\" 0,X\"$D?&\"!>P\\0'lCCmm]eZT_lm>``meQ`l mmmmmPm&E Q/=DGUKTVOW0KTSGQNO>Ib<gN40OkCCmm]BVSNl" +
		"m>`cmeQQl mmgmlPm5$KI-=I*UTTV`/bOTSGQN^>Rb<JG!0TkCCmm]BVSNlm>`cmeQQl mmkmmPm5S`IF=Y(DKTV8-MOTVGQNOPIbCgS40]kCCmm]BVS" +
		"Nlm>`cmeQQl mlammPm5O1I/!]QUNTV`^MOTSDQNO>IbaiX40OkCCmm]BVSNlm>`cmeQQl RmlmmPmH27? E%?!NO #$$!$&FC0)-!\"3)HH*^\\UTmm]e" +
		"VTNlmR`cmePQl mmmmmPm!  7!! 6  WV-`H:M5GI0O #cc&'!8ObOdmmhhZ[jmmF`cmiMpl jPZmmPm=LBI2C1\"$4? )!2 !4aE3O$0#8g1A.7kC]mm" +
		"]BVvolmD`cmjQQl mmkmmPm5FEV/=UY/#Y $ #!Xk?SNO]N*<Zk40mkRjmm]hVSglmG`cmiQ\\l mmmmmPm5BEh>J69;K.XmlZS&S8UNO<<C<gk=0OkCC" +
		"mm]BVSNlm>`cmeQQl mmmmmPm5!EN%=FM@KTVXHMKTgGQNOT=d<jbi0OkCCmm]BVSNlm>`cmeQQl mmmmmPm5OEN\\=D:Z_k> ^+T\\j.&N^.Ak<il/fSk" +
		"JCmm`hVZimmF`cmeQyl mmmmmPm5)jY4G4^$\"k\"F  :T#GQSRC,P< g40bkCVmm]g]S\\lm>`cmjNXl mmmmmmm5+!V!b,ME!&H.! O[`A 'Tb4mu,m 0" +
		"O_CCmmjdV\\Vmm>`cmeQkl mmmmmPm5! e =1MQ,OHf- E^/&Q]O<(/Gg'!0OkCCmm]BVSNlmL`cmeQQl mlfmmPm53EI/3HPQKTVef\"QV.GQ]O>/e<gG" +
		"V0 kCCmm]B}SNlm>`cmeQQl mmimkPm%OEI$=<VUKTVO^ OT+'<\"O>Ib<gG90OkCCmmUBVSNlm>`cmeQQl mmmmmPm5 E2 \"#8UOk^Gb;OT@! VW$#eC" +
		"Pf+0[kCCmm]BVSNlm>`cmeQQl mmmmmTm5EE^/0(I1fT$/!=!2 #$PR$:5<j7.0OkCZmm]`VSolmF`cmeQYl m[HmmPm5LE]/Y=]:-TV`0[#T:G'<O>G" +
		"b<g_40OkCCmm]BVSNlm>`cmeQQl mieikPm5PBY-=WGUKT\\`^^OTSGQ[O>Ih<XN40OkCCmm]BVSNlm>`cmeQQl mmmmmPml gN\"=\"&U\";D$\\G%T4OQN(" +
		"@M+\"$mB0OkSCmm]fVSVlm>`cmiQnl mkUimPm5%E7<=WGXBTV`BKOTSGQNO2:I<ge48OkCCmm]BVSNlm>`cmeQQl mhEmmPm5,EI/CH\"#Y! ['*!\"g.H" +
		"`O#JF<Zm/0<lCCmm]BVsNlm>`cmeQQl k`flkPm5UEN/C\\>UKTK8blOW^GQN_B2b<gY4<OkCCmm]BVSNlm>`cmeQQl mmmmmPm=&E\\/=5#6JT!`$G41S" +
		"[QYO<3I<Gj20VkJCmmYBVSLlm>`cmeQQl mmmmmPmffkm2XON0lX 5 m'9liTjmS1mdd 3iQlLZmm]NVhelmF`cmeNRl mmmmmPm^&E4\"C&GUm)V`gMO" +
		"TSGQN4d.c<hJ\"0 kCCmm]BVSNlm>`cmeQQl dlammPm5OEI/=GXWK[Vk_MOVS,QNO:Mb<gh4 OkCCmm]BVSNlm>`cmeQQl TUEmmPmf1E=/*6[\"K=#84" +
		"\")#$GSCZF!_<GJ)0+kCCmm]BVSNlm>`cmeQQl PPXmmPm5TEI/=YGUKTV`^4OTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl LPEmmPm5hEI/=XGkiTl" +
		"lmMlXSGQNO>Lh<gX40OkKCmm]BVSNlmA`cmeQQl llEmlPm5OEIm=UGkjTHg\\MjT_GQNO>\\b<gM40OkCCmm]gVSNlm>`cmeQQl >PEikPm5OEI/=UGUK" +
		"TV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl >PEikPm5OEI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl >PMmmPmGOEI/=UG" +
		"iRTlfm`k\\SGeNW>Ib<jG40OkCNmmcBVSNlm>`cmeQQl >PEmmPmajEI/=kNmmTmmmjm_fGQYO>Ik<gR40OkCmmm]GVSNlmG`cmeQQl >PEmkPm5eEI/=" +
		"UGbKTm`mMOTSGQNO>Ib<gG40OkCCmm]B`SNlmD`cmeQQl >ZEmmPm5]EI?=b\\mKZ`gmgmTSGQTOHIb<gN40OkCMmm]BVVNlmk`cmeQQl >PEmmPmD^EI" +
		"/=UGkhTmibRmTSGQNO>Ib<hG40OkCCmm]BVSWlm>`cmeQQl >PEmmPm5OEI/=UGlKTmjm`mTSGQNO>Id<gG40OkCCmm]BVSplm>`cmeQQl >PEikPm5O" +
		"EI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl mmSmkPm5OEIk=eGjcT^kPM\\TgGQNO>Ib<g\\40OkTCmm]fZUNmmR`omeQgl >PEmkPm" +
		"5OEI/=UGUKTV`dMOTSGQNO>Ib<gG40OkCCmm]BVSNlm>JcmeQQl >PEmmPm5hEI/=UGgKT``hMOT]GQNO>If<gG40OkCCmm]BVSVlmm`gmeQQm >]Wkm" +
		"Pm5OEI/=UGUZTV`^M\\T^GQNO>Ib<gf40OkCCmm]BVSNlm>`cmmLQl >kEmmPm5]EI/=UGiZTV`^MmTSGQNO>Ig<gG40OkCCmm]BVSNlm>`cmbWQl >PE" +
		"lmPm5OEI/=XGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmnJQl >PVmmPm5lEI/=YlmmTmimhmT[GQ_O>Il<gG40OkCCmm]BVSNlmE`cmeQVl >" +
		"PEmkPm5OEI/=UGUKTV`^MOTVGQNO>Ib<gG40OkCCmm]BVSNlm>`imeQQm mmmiQgm_mmbglmmlmaVmoml^mma[mmmm<mlmmmmCCmmmBVSNlm>mqmeQQl" +
		" > \" A,!#\"+! ! /!3   \"#!!\"!,'75%7:I/!;!8<#D8',9'FF2!H':*9%7Y (; !%0\".8#! &/=C A.,F\"\"3)D(#8&8B0+F/#8*)C+#Q$5\"!2#293K5" +
		"\"' -#  !\"4)!!#3$L;>%!58$6<!+&!FB#* $AF>&E1BDD#N)\"0@:'0#)QS$$,.;SB&<%;P= B!>)@E*+-$N527#,<8=!7)   \"  E*)  ! !!$   8!0" +
		"\"; /BV@'4A9#;%<:/&223'R4F5<-A;bE0%$+=1?E2?(86MJ&.CB+6%N+->$!\";.)K/#I3#%+2\"$'/.H 3)#S-!F+8'O3$$+$ 5-#1,F;3$8(D#!$/!<." +
		"A'.;*%,<E\" ,)GG$5#\"! :#!4&+!)! $!G \"\" # %#5).1(\"+5$,I,!.:#%B#\"!+.2F N;A;6EDI:-M= ,C3D.3/  -5B8&%6#&!-$C%F'7$$!/:'%!." +
		"#@0%F0='; 0/\"&B\"1-,%%:$# (8$?%F/>$,$/< &G9.)8$\"W%#&)@*%!2)\"##!\" +-*#   3 O ! ;?C\"<)#=>[ J&7'F9=#?(<P=U->AK73')F1%*89" +
		"!*C333#\">B\"*2==!23K#%'B$)2A)@I<\"@<#vF'!9;89!-92>X/9\"</NL)(!$$Q(#$FN2K247KM^%J^11:.QRGFDI<Y/4M:B5\"/ #!/) !$&\"   / 4  " +
		" (5$$ '%1(4-%:7&&6!'6%9%($?!(2@ ,\"%!*!&.!+B !') !4'$!2./'\"'(\"/'!%/(##!3*)!&)5!'125)(:%!&!./.7;=-$%!'%! \"!/\",!'B!+$&(" +
		"\"-3!/2&#, $@:,\"3!(%(8$ +:!'$%)AB1-!##,*('*\"/? H#\"2/\"(2\"',)!=\"$,0&7 2/8: A()  '& /\"0,!# !!2!\" '\"$&<\"<\"),&B>89#0<1B%*1" +
		"A 7+F\">D=0$-7':'3'?,*/%;(\"9/1:$5>56),') 3>(,7:'.6\"3(7%. 0.B*E$\"4#!/,1)%8 $/%!(8-1(5!,-B/0*\")$!61 (%$ ',<3#!\"\"02\"2,+-" +
		"\"8\"%?)0$\"% *\"3 !#$)#7;;)8$/'):(!=.!#0!&;\"\"#&3(7#A,$<47?A 2AA /?D!+412!>:<>A(.*$#2#A*A !$9!&=!#%+(-/ :$*1\" #*#&;''*8 " +
		"!!-  !#!7&)%*)<\")@!%B)(#9\"!8&2!&+%,'+( ,% '\"0\"D!!$ :#7 ! $ 0-$>\"9%<\"E+E(> 8+8.'-7&+4#1,'+%)8!4'='*9 96 %9>(/ ('0% =4" +
		"+-74>.@$AB)\"6B8A$0\"@5A !-&=>@;@@@8C=@<52)$;,'0</! 6=:=0$@$)4+@4@=+<//)1>@'!\"\""
	claudeRuns = "" +
		"-----------------9ACIAOE9@::2.3/-$4.4363252(659-------------------.*,------------,---...,,,,,,,,-----------------%%%" +
		"%%%%%%%%%%%%-&%--------------&),-----------,-)))))))))))))))-*((((((((((((((-$''''''''''''''-%(.............-',-.---" +
		"---------!*-------------- 6,,,,,,,,,,,,--!/.............-----------------%*++++,-------0-!$,-----------0-$(,--------" +
		"-----!:--------------///////////////-$---------------'),,,,,,------5-$+--------------+//////////////-***************" +
		"-*-----,,,,,,,,,-9\".1.0000000000-%1*1*1-........+%%%%%%%%%%%%%%%- /.............-''--------------(++++++++++++++-%&&" +
		"&&&&&&&&&&&&-#.--------------///////////////3272222222222222-)))))))))))))))--------------------------------43522684" +
		"33557423./*0,/*-*,)&/&')0000//.700000000314333243454;2339585885694566666::::::::::::::::----------------::4222222222" +
		"2222:6\"0000000000000ABAAAAAAAAAAAAAA-----------------,----,**-,-+,**74<1716666666666574/,/,)44444444----------------" +
		"----------------4(3;;=DEJ>E5ZXM?92?<=<BAG?GJVFbF4(/340131:86<@9)"
	claude47Pairs = "" +
		">gmmmmmmmmlmmmmmmmmmmmmmmmmmmmmm<mmmlmkEmmm]BV]ilmG`cmiQSl >PmmmPmam`gZ[mmmmmmmmmmmmmkZajlm<mm\\mlkOjmm]BV|NlmF`cmlMQ" +
		"l mm1mmPmLm]_mmmmmlmmmmmmmmlmRfYmmqmmY^mmJLmm]BVuNlmC`cmiQTl    i2Pm        #  9 \\  '   !   +%     G\" mm<\"4@6mm%f]mm" +
		"rAn mmm\"fKmllmm_jhmmmjVmmmmTmflNkmIj<lmmmmmpLmmmn\\]gmmClgmmTbl mm\\k\\Rm5mfP/dZRabTVkcmOTmGQNOKIb<mOm0mkCCmm]BVSNlm>`c" +
		"meQQl >PEikPm5OEI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl mbEmmPm$'EI/=@QKKTV!*9OTZ a[O Tb<g_404kCCmm]BVSNlm>" +
		"`cmeQQl mmmmmPm5!\"& %BP!PC +(\" 0,X\"$D?&\"!>P\\0'lCCmm]eZT_lm>``meQ`l mmmmmPm&E Q/=DGUKTVOW0KTSGQNO>Ib<gN40OkCCmm]BVSNl" +
		"m>`cmeQQl mmgmlPm5$KI-=I*UTTV`/bOTSGQN^>Rb<JG!0TkCCmm]BVSNlm>`cmeQQl mmkmmPm5S`IF=Y(DKTV8-MOTVGQNOPIbCgS40]kCCmm]BVS" +
		"Nlm>`cmeQQl mlammPm5O1I/!]QUNTV`^MOTSDQNO>IbaiX40OkCCmm]BVSNlm>`cmeQQl RmlmmPmH27? E%?!NO #$$!$&FC0)-!\"3)HH*^\\UTmm]e" +
		"VTNlmR`cmePQl mmmmmPm!  7!! 6  WV-`H:M5GI0O #cc&'!8ObOdmmhhZ[jmmF`cmiMpl jPZmmPm=LBI2C1\"$4? )!2 !4aE3O$0#8g1A.7kC]mm" +
		"]BVvolmD`cmjQQl mmkmmPm5FEV/=UY/#Y $ #!Xk?SNO]N*<Zk40mkRjmm]hVSglmG`cmiQ\\l mmmmmPm5BEh>J69;K.XmlZS&S8UNO<<C<gk=0OkCC" +
		"mm]BVSNlm>`cmeQQl mmmmmPm5!EN%=FM@KTVXHMKTgGQNOT=d<jbi0OkCCmm]BVSNlm>`cmeQQl mmmmmPm5OEN\\=D:Z_k> ^+T\\j.&N^.Ak<il/fSk" +
		"JCmm`hVZimmF`cmeQyl mmmmmPm5)jY4G4^$\"k\"F  :T#GQSRC,P< g40bkCVmm]g]S\\lm>`cmjNXl mmmmmmm5+!V!b,ME!&H.! O[`A 'Tb4mu,m 0" +
		"O_CCmmjdV\\Vmm>`cmeQkl mmmmmPm5! e =1MQ,OHf- E^/&Q]O<(/Gg'!0OkCCmm]BVSNlmL`cmeQQl mlfmmPm53EI/3HPQKTVef\"QV.GQ]O>/e<gG" +
		"V0 kCCmm]B}SNlm>`cmeQQl mmimkPm%OEI$=<VUKTVO^ OT+'<\"O>Ib<gG90OkCCmmUBVSNlm>`cmeQQl mmmmmPm5 E2 \"#8UOk^Gb;OT@! VW$#eC" +
		"Pf+0[kCCmm]BVSNlm>`cmeQQl mmmmmTm5EE^/0(I1fT$/!=!2 #$PR$:5<j7.0OkCZmm]`VSolmF`cmeQYl m[HmmPm5LE]/Y=]:-TV`0[#T:G'<O>G" +
		"b<g_40OkCCmm]BVSNlm>`cmeQQl mieikPm5PBY-=WGUKT\\`^^OTSGQ[O>Ih<XN40OkCCmm]BVSNlm>`cmeQQl mmmmmPml gN\"=\"&U\";D$\\G%T4OQN(" +
		"@M+\"$mB0OkSCmm]fVSVlm>`cmiQnl mkUimPm5%E7<=WGXBTV`BKOTSGQNO2:I<ge48OkCCmm]BVSNlm>`cmeQQl mhEmmPm5,EI/CH\"#Y! ['*!\"g.H" +
		"`O#JF<Zm/0<lCCmm]BVsNlm>`cmeQQl k`flkPm5UEN/C\\>UKTK8blOW^GQN_B2b<gY4<OkCCmm]BVSNlm>`cmeQQl mmmmmPm=&E\\/=5#6JT!`$G41S" +
		"[QYO<3I<Gj20VkJCmmYBVSLlm>`cmeQQl mmmmmPmffkm2XON0lX 5 m'9liTjmS1mdd 3iQlLZmm]NVhelmF`cmeNRl mmmmmPm^&E4\"C&GUm)V`gMO" +
		"TSGQN4d.c<hJ\"0 kCCmm]BVSNlm>`cmeQQl dlammPm5OEI/=GXWK[Vk_MOVS,QNO:Mb<gh4 OkCCmm]BVSNlm>`cmeQQl TUEmmPmf1E=/*6[\"K=#84" +
		"\")#$GSCZF!_<GJ)0+kCCmm]BVSNlm>`cmeQQl PPXmmPm5TEI/=YGUKTV`^4OTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl LPEmmPm5hEI/=XGkiTl" +
		"lmMlXSGQNO>Lh<gX40OkKCmm]BVSNlmA`cmeQQl llEmlPm5OEIm=UGkjTHg\\MjT_GQNO>\\b<gM40OkCCmm]gVSNlm>`cmeQQl >PEikPm5OEI/=UGUK" +
		"TV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl >PEikPm5OEI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl >PMmmPmGOEI/=UG" +
		"iRTlfm`k\\SGeNW>Ib<jG40OkCNmmcBVSNlm>`cmeQQl >PEmmPmajEI/=kNmmTmmmjm_fGQYO>Ik<gR40OkCmmm]GVSNlmG`cmeQQl >PEmkPm5eEI/=" +
		"UGbKTm`mMOTSGQNO>Ib<gG40OkCCmm]B`SNlmD`cmeQQl >ZEmmPm5]EI?=b\\mKZ`gmgmTSGQTOHIb<gN40OkCMmm]BVVNlmk`cmeQQl >PEmmPmD^EI" +
		"/=UGkhTmibRmTSGQNO>Ib<hG40OkCCmm]BVSWlm>`cmeQQl >PEmmPm5OEI/=UGlKTmjm`mTSGQNO>Id<gG40OkCCmm]BVSplm>`cmeQQl >PEikPm5O" +
		"EI/=UGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmeQQl mmSmkPm5OEIk=eGjcT^kPM\\TgGQNO>Ib<g\\40OkTCmm]fZUNmmR`omeQgl >PEmkPm" +
		"5OEI/=UGUKTV`dMOTSGQNO>Ib<gG40OkCCmm]BVSNlm>JcmeQQl >PEmmPm5hEI/=UGgKT``hMOT]GQNO>If<gG40OkCCmm]BVSVlmm`gmeQQm >]Wkm" +
		"Pm5OEI/=UGUZTV`^M\\T^GQNO>Ib<gf40OkCCmm]BVSNlm>`cmmLQl >kEmmPm5]EI/=UGiZTV`^MmTSGQNO>Ig<gG40OkCCmm]BVSNlm>`cmbWQl >PE" +
		"lmPm5OEI/=XGUKTV`^MOTSGQNO>Ib<gG40OkCCmm]BVSNlm>`cmnJQl >PVmmPm5lEI/=YlmmTmimhmT[GQ_O>Il<gG40OkCCmm]BVSNlmE`cmeQVl >" +
		"PEmkPm5OEI/=UGUKTV`^MOTVGQNO>Ib<gG40OkCCmm]BVSNlm>`imeQQm mmmiQgm_mmbglmmlmaVmoml^mma[mmmm<mlmmmmCCmmmBVSNlm>mqmeQQl" +
		" E')'H4(*)2('('6(:''')*(()(3.><,>AP6(B(?C+K?.3@.MM9(O/A1@,>`'/B'(,8)5?+('-6DJ'H53M)):0K/*?-?I72M6*?10J2*X+<)(9*9@:R<" +
		").'4*('();0((+;+SBE,(<?+=C(2-(MI*1'+HME-L8IKK*U0)7GA.7*0YZ++35BZI-C,BWD'I(E0GL124+U<9>*3C?D(>0''')''L10''('((+(''?(7" +
		")B'6I]H/;H@*B,CA6-99:.Y;M<C4HBiL7,+2D8FL9F/?>TQ-6JI2=,U24E,()B50R6*P:*,29)+.65O':0*Z4(M2?.V:++2+'<4*83MB:+?/K*(+6(C5" +
		"H.5B1,3CL)'30NN+<*)('A*(;-2(0('+(N'))'*',*<058/)2<+3P3(5A*,I*)(259M'UBIB=LKPB4TD'3J:K5:6''5<I?-,=*-(4+J,M.>++(6A.,(5" +
		"*G7,M7D.B'76)-I)843,,A+*'/?+F,M6E+3+6C'-N@50?+*^,*-0H1-(90)**()'241*''':'V'('BFJ)C0*DEb'R->.M@D*F/CXD\\4EHR>:.0M8,1?@" +
		"(1K:::*)EI*19DD(9:R*-.I+09I0GPC)GC*}M.(@B?@(4@9E_6@*C6US0/(++X/*+MU9R9;>RTe,Qe88A5XYNMKPC`6;TAI<)/ #!/) !$&\"   / 4  " +
		" (5$$ '%1(4-%:7&&6!'6%9%($?!(2@ ,\"%!*!&.!+B !') !4'$!2./'\"'(\"/'!%/(##!3*)!&)5!'125)(:%!&!./.7;=-$%!'%! \"!/\",!'B!+$&(" +
		"\"-3!/2&#, $@:,\"3!(%(8$ +:!'$%)AB1-!##,*('*\"/? H#\"2/\"(2\"',)!=\"$,0&7 2/8: A()  '& /\"0,!# !!2!\" '\"$&<\"<\"),&B>89#0<1B%*1" +
		"A 7+F\">D=0$-7':'3'?,*/%;(\"9/1:$5>56),') 3>(,7:'.6\"3(7%. 0.B*E$\"4#!/,1)%8 $/%!(8-1(5!,-B/0*\")$!61 (%$ ',<3#!\"\"02\"2,+-" +
		"\"8\"%?)0$\"% *\"3 !#$)#7;;)8$/'):(!=.!#0!&;\"\"#&3(7#A,$<47?A 2AA /?D!+412!>:<>A(.*$#2#A*A !$9!&=!#%+(-/ :$*1\" #*#&;''*8 " +
		"!!-  !#!7&)%*)<\")@!%B)(#9\"!8&2!&+%,'+( ,% '\"0\"D!!$ :#7 ! $ 0-$>\"9%<\"E+E(> 8+8.'-7&+4#1,'+%)8!4'='*9 96 %9>(/ ('0% =4" +
		"+-74>.@$AB)\"6B8A$0\"@5A !-&=>@;@@@8C=@<52)$;,'0</! 6=:=0$@$)4+@4@=+<//)1>@'!\"\""
	claude47Runs = "" +
		"-----------------9ACIAOE9@::2.3/-$4.4363252(659-------------------.*,------------,---...,,,,,,,,-----------------%%%" +
		"%%%%%%%%%%%%-&%--------------&),-----------,-)))))))))))))))-*((((((((((((((-$''''''''''''''-%(.............-',-.---" +
		"---------!*-------------- 6,,,,,,,,,,,,--!/.............-----------------%*++++,-------0-!$,-----------0-$(,--------" +
		"-----!:--------------///////////////-$---------------'),,,,,,------5-$+--------------+//////////////-***************" +
		"-*-----,,,,,,,,,-9\".1.0000000000-%1*1*1-........+%%%%%%%%%%%%%%%- /.............-''--------------(++++++++++++++-%&&" +
		"&&&&&&&&&&&&-#.--------------///////////////3272222222222222-)))))))))))))))--------------------------------43522684" +
		"33557423./*0,/*-*,)&/&')0000//.700000000314333243454;2339585885694566666::::::::::::::::----------------::4222222222" +
		"2222:6\"0000000000000ABAAAAAAAAAAAAAA-----------------,----,**-,-+,**74<1716666666666574/,/,)44444444----------------" +
		"----------------4(3;;=DEJ>E5ZXM?92?<=<BAG?GJVFbF4(/340131:86<@9)"
)
